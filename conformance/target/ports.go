package target

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// portBlock is four neighbouring ports for one server: a broker listens on P-2 (fast port), P and P+1 (HA).
// A locked file keeps other test processes away from the block while its server is down for a restart.
type portBlock struct {
	first int
	lock  *os.File
}

const portsInBlock = 4

// listenPort is P of the block.
func (b *portBlock) listenPort() int { return b.first + 2 }

func (b *portBlock) release() { _ = b.lock.Close() }

// takePorts finds a free block in CONFORMANCE_PORTS, beginning at a random place.
func takePorts() (*portBlock, error) {
	spec := os.Getenv("CONFORMANCE_PORTS")
	if spec == "" {
		spec = "21000-22999"
	}
	var first, last int
	if _, err := fmt.Sscanf(spec, "%d-%d", &first, &last); err != nil || first < 1 || last > 65535 || last-first < portsInBlock {
		return nil, fmt.Errorf("CONFORMANCE_PORTS is %q, want like 21000-22999", spec)
	}
	dir := filepath.Join(os.TempDir(), "rocketd-conformance-ports")
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	blocks := (last - first + 1) / portsInBlock
	start := rand.IntN(blocks)
	for i := range blocks {
		base := first + (start+i)%blocks*portsInBlock
		lock, err := os.OpenFile(filepath.Join(dir, strconv.Itoa(base)+".lock"), os.O_CREATE|os.O_RDWR, 0o666)
		if err != nil {
			return nil, err
		}
		if syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil && allFree(base) {
			return &portBlock{first: base, lock: lock}, nil
		}
		_ = lock.Close()
	}
	return nil, fmt.Errorf("no %d free ports side by side in %s (CONFORMANCE_PORTS)", portsInBlock, spec)
}

func allFree(base int) bool {
	for p := base; p < base+portsInBlock; p++ {
		l, err := net.Listen("tcp", ":"+strconv.Itoa(p)) // the official servers listen on all addresses
		if err != nil {
			return false
		}
		_ = l.Close()
	}
	return true
}
