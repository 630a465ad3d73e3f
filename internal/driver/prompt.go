package driver

import (
	"fmt"
	"slices"

	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/vdevice"
)

// mostPassedBefore is how many tokens the caches of the program of a prompt have at most before it. They have none; but a
// cache grows by a symbol with a range, of which extents are compared (ir/axes).
const mostPassedBefore = 2

// leastPassed is how many tokens a prompt must have room for, so that its program pays.
const leastPassed = 4

// planPrompt plans the program that takes the prompts of a library that generates (graphopt.Generation.Prompt). Its
// caches are those of the steps. It is made of launches, so a device need not hold all of its blocks at once. Where
// there can be none, steps take the prompt, token by token.
func (c *Compilation) planPrompt(job *Job) {
	if c.opt.generation == nil {
		return
	}
	tokens := c.opt.generation.Tokens - 1 - mostPassedBefore
	switch {
	case c.opt.promptTokens == "":
		job.Printf("  prompts are taken token by token: the decoder takes one in each run\n")
		return
	case tokens < leastPassed:
		return
	}
	done := job.Stage("prompt")
	plan, us, err := c.promptPlan(tokens)
	if err != nil {
		reason := diag.Reason(err)
		if all := diag.All(err); len(all) > 0 {
			reason = all[0] // one is enough
		}
		job.Printf("  prompts are taken token by token: %v\n", reason)
		return
	}
	c.prompt = plan
	done("up to %d tokens at once, %d launches, %.1f µs predicted for so many", tokens, plan.Stats().Launches, us)
}

// promptPlan plans the program of prompts that takes up to so many tokens.
func (c *Compilation) promptPlan(tokens int64) (*vdevice.Plan, float64, error) {
	c.known = map[string]bool{}
	c.note(c.plan)
	d := &Compilation{opt: c.opt, spec: c.spec, known: c.known}
	generation := *c.opt.generation
	generation.Prompt = true
	d.opt.generation = &generation
	extents := map[string]string{
		generation.Past: fmt.Sprintf("0..%d", mostPassedBefore), c.opt.promptTokens: fmt.Sprintf("1..%d", tokens),
	}
	d.opt.Dims = slices.DeleteFunc(slices.Clone(c.opt.Dims), func(s string) bool {
		name, _, _ := cutLast(s, "=")
		return extents[name] != ""
	})
	for name, text := range extents {
		d.opt.Dims = append(d.opt.Dims, name+"="+text)
	}
	slices.Sort(d.opt.Dims)
	d.opt.Tries, d.opt.ProfileBudget, d.opt.Dump, d.opt.Plan = 1, 0, "", "waves"
	quiet := &Job{}
	err := d.prepareGeneral(quiet, d.opt.ranges())
	if err == nil {
		err = d.schedule(quiet)
	}
	if err != nil {
		return nil, 0, err
	}
	return d.plan, d.summary.PredictedUS, nil
}
