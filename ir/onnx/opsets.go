package onnx

import (
	"fmt"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/onnx/onnxpb"
)

// The versions of ai.onnx that the importer knows. Nodes of opsets from minOpset to ir.ReferenceOpset are rewritten to
// ir.ReferenceOpset. The later opsets up to maxOpset only add to it: element types, attributes with defaults, and
// operators. So the operators of ir.ReferenceOpset have the same meaning in them, and new operators have the meaning of
// the opset that introduced them.
const (
	minOpset = 7
	maxOpset = ir.NewestOpset
)

// The IR versions that the importer knows; version 3 is the first with opset imports.
const (
	minIRVersion = 3
	maxIRVersion = int64(onnxpb.Version_IR_VERSION)
)

// standard is the name of the domain "" in messages.
const standard = "ai.onnx"

// canonicalDomain maps both names of the standard domain, "" and "ai.onnx", to "".
func canonicalDomain(d string) string {
	if d == standard {
		return ""
	}
	return d
}

func domainName(d string) string {
	if d == "" {
		return standard
	}
	return d
}

// readOpsets turns opset imports into a map from domain to version. where is a prefix for messages: "" for the model,
// and "function f: " for a function.
func (im *importer) readOpsets(list []*onnxpb.OperatorSetIdProto, where string) map[string]int64 {
	out := map[string]int64{}
	for _, o := range list {
		d := canonicalDomain(o.GetDomain())
		if v, ok := out[d]; ok && v != o.GetVersion() {
			im.errorf("bad-opset", "", "%sdomain %s is imported in versions %d and %d", where, domainName(d), v,
				o.GetVersion())
		}
		out[d] = max(out[d], o.GetVersion())
	}
	return out
}

// checkVersions reports models whose IR version or opset is not supported; their nodes are not read.
func (im *importer) checkVersions(opsets map[string]int64) bool {
	switch v := im.model.IRVersion; {
	case v < minIRVersion:
		im.errorf("unsupported-ir-version", "export the model again with a current exporter",
			"IR version %d is not supported, %d to %d are", v, minIRVersion, maxIRVersion)
		return false
	case v > maxIRVersion:
		im.warnf("new-ir-version", "", "IR version %d is newer than %d, the newest one known; what it adds is ignored",
			v, maxIRVersion)
	}
	return im.checkOpset(opsets, "")
}

// checkOpset checks the version of ai.onnx. A model or function that uses no standard operators need not import it.
func (im *importer) checkOpset(opsets map[string]int64, where string) bool {
	v, ok := opsets[""]
	switch {
	case !ok:
		return true
	case v < minOpset:
		im.errorf("unsupported-opset",
			fmt.Sprintf("convert the model to opset %d with onnx.version_converter, or export it again",
				ir.ReferenceOpset),
			"%sopset %d is not supported, %d to %d are", where, v, minOpset, maxOpset)
		return false
	case v > maxOpset:
		im.errorf("unsupported-opset", fmt.Sprintf("export the model with opset %d", ir.ReferenceOpset),
			"%sopset %d is newer than %d, the newest one known", where, v, maxOpset)
		return false
	case v > ir.ReferenceOpset && im.once("new-opset"):
		im.warnf("new-opset", "", "%sopset %d is read as opset %d with the operators, element types and options that opsets up to %d add",
			where, v, ir.ReferenceOpset, maxOpset)
	}
	return true
}
