package golden

import (
	"strings"
	"testing"
)

func TestMain(m *testing.M) { Main(m) }

func contains(s, part string) bool { return strings.Contains(s, part) }
