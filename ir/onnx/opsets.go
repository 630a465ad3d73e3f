package onnx

import (
	"fmt"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/onnx/onnxpb"
)

// The versions of ai.onnx that the importer knows. Opsets from minOpset to ir.ReferenceOpset are
// rewritten to ir.ReferenceOpset. Later ones up to maxOpset only add element types, attributes with
// defaults and operators to those of ir.ReferenceOpset, so that these mean the same; what they add is
// read as they say.
const (
	minOpset = 7
	maxOpset = ir.NewestOpset
)

// The IR versions that the importer knows; version 3 is the first with opset imports.
const (
	minIRVersion = 3
	maxIRVersion = int64(onnxpb.Version_IR_VERSION)
)

// standard is how messages name the domain "".
const standard = "ai.onnx"

// canonicalDomain maps the two names of the standard domain to "".
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

// readOpsets turns opset imports into a map. where is empty or names the function they belong to.
func (im *importer) readOpsets(list []*onnxpb.OperatorSetIdProto, where string) map[string]int64 {
	out := map[string]int64{}
	for _, o := range list {
		d := canonicalDomain(o.GetDomain())
		if v, ok := out[d]; ok && v != o.GetVersion() {
			im.errorf("bad-opset", "", "%sdomain %s is imported in versions %d and %d", where, domainName(d), v, o.GetVersion())
		}
		out[d] = max(out[d], o.GetVersion())
	}
	return out
}

// checkVersions refuses models whose nodes cannot be understood at all.
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

// checkOpset checks the version of ai.onnx. A model or function without standard operators has none.
func (im *importer) checkOpset(opsets map[string]int64, where string) bool {
	v, ok := opsets[""]
	switch {
	case !ok:
		return true
	case v < minOpset:
		im.errorf("unsupported-opset",
			fmt.Sprintf("convert the model to opset %d with onnx.version_converter, or export it again", ir.ReferenceOpset),
			"%sopset %d is not supported, %d to %d are", where, v, minOpset, maxOpset)
		return false
	case v > maxOpset:
		im.errorf("unsupported-opset", fmt.Sprintf("export the model with opset %d", ir.ReferenceOpset),
			"%sopset %d is newer than %d, the newest one known", where, v, maxOpset)
		return false
	case v > ir.ReferenceOpset && im.once("new-opset"):
		im.warnf("new-opset", "", "%sopset %d is read as opset %d with what opsets up to %d add: operators, element types and options",
			where, v, ir.ReferenceOpset, maxOpset)
	}
	return true
}
