package target

import (
	"fmt"
	"os"
)

// logLines is how much of each log RunMain shows when a case has failed.
const logLines = 60

// RunMain is the TestMain of a package whose cases share one cluster: it starts one, hands it to begin, runs the cases, shows where the
// logs end when one has failed, and closes the cluster. It returns the exit code.
func RunMain(m interface{ Run() int }, o Options, begin func(*Target)) (code int) {
	t, err := StartMain(o)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() {
		if err := t.Close(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = max(code, 1)
		}
	}()
	begin(t)
	if code = m.Run(); code != 0 {
		fmt.Fprintln(os.Stderr, t.LogTails(logLines))
	}
	return code
}
