package examples

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// The services of examples/services are built for a model on the emulator, and stand a short load test, in which
// they are killed and stopped, too. With TRITONSERVER, which names its program, Triton Inference Server stands it,
// too.
func TestExampleServices(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a library and services")
	}
	examples, err := filepath.Abs("services")
	if err != nil {
		t.Fatal(err)
	}
	for _, command := range [][]string{{"c++", "--version"}, {"cmake", "--version"}, {"bash", "--version"}} {
		if out, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
			t.Skipf("%v: %v %s", command, err, out)
		}
	}
	download := exec.Command("go", "mod", "download", "github.com/prometheus/client_golang")
	download.Dir = filepath.Join(examples, "go")
	if out, err := download.CombinedOutput(); err != nil {
		t.Skipf("the modules that the service needs are not at hand: %v %s", err, out)
	}
	services := "go"
	if _, err := os.Stat("/usr/include/httplib.h"); err == nil {
		services += " cpp"
	} else {
		t.Log("without cpp-httplib only the service in Go is tested")
	}
	if os.Getenv("TRITONSERVER") != "" {
		services += " triton"
	}
	rammerc, out := filepath.Join(t.TempDir(), "rammerc"), t.TempDir()
	if text, err := exec.Command("go", "build", "-o", rammerc, "../cmd/rammerc").CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, text)
	}
	cmd := exec.Command("bash", filepath.Join(examples, "load_test.sh"))
	cmd.Env = append(os.Environ(), "SECONDS_EACH=2", "SERVICES="+services, "RAMMERC="+rammerc, "OUT="+out, "CGO_ENABLED=1",
		fmt.Sprintf("PORT=%d", freePort(t)))
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	results, err := filepath.Glob(filepath.Join(out, "*.json"))
	if err != nil || len(results) == 0 {
		t.Fatal("there are no results")
	}
	for _, file := range results {
		var r struct {
			Requests, Errors int
			MeanBatch        float64  `json:"mean_batch"`
			Problems         []string `json:"problems"`
		}
		text, err := os.ReadFile(file)
		if err == nil {
			err = json.Unmarshal(text, &r)
		}
		if err != nil || r.Requests == 0 || r.Errors != 0 || r.MeanBatch < 1 || len(r.Problems) > 0 {
			t.Errorf("%s: %v\n%s", file, err, text)
		}
	}
}

// freePort is a port that is free now; the services take it at once.
func freePort(t *testing.T) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port
}
