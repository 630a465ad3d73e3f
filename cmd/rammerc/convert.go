package main

import (
	"github.com/spf13/cobra"

	"github.com/rammerc/rammerc/internal/commands"
)

func (a *app) convertCommand() *cobra.Command {
	var o commands.ConvertOptions
	cmd := &cobra.Command{
		Use:   "convert KERNEL.cu",
		Short: "Make an rKernel of a kernel that is written in CUDA",
		Long: `convert reads a __global__ function, with what it needs of its file and of headers beside it, and writes an
rKernel: NAME.cuh and its manifest NAME.yaml. The body stays as it is; blocks become rTasks, and __syncthreads
a barrier of the rTask's threads. The specification says what the source does not: template arguments, the
geometry of the launch, and what each argument is. docs/KERNELS.md has its form, and what cannot be converted.

The parser is tree-sitter in Python: pip install tree-sitter tree-sitter-cuda. RAMMER_PYTHON names the
Python, where it is not python3. Without it the exit status is 4.`,
		Example: `  rammerc convert softmax.cu --spec softmax.yaml -o kernels --check`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Source = args[0]
			r, err := commands.Convert(a.job, o)
			if err != nil {
				return err
			}
			a.emit(cmd, r, r.Text)
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Spec, "spec", "", "the specification, a YAML file")
	f.StringVarP(&o.Out, "output", "o", "", "folder of rKernels")
	f.StringVar(&o.Python, "python", "", "Python that has the parser (default: RAMMER_PYTHON, else python3)")
	f.BoolVar(&o.Check, "check", false, "compare with the original on the example of the specification: on the GPU at "+
		"hand with times, else on the emulator; exit status 3 if they differ")
	return cmd
}
