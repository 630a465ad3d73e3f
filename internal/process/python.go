package process

import "os"

// PythonVariable names the Python that has the packages which a command needs, where it is not python3.
const PythonVariable = "RAMMER_PYTHON"

// Python is the Python for child processes.
func Python() string {
	if python := os.Getenv(PythonVariable); python != "" {
		return python
	}
	return "python3"
}
