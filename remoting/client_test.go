package remoting_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"rocketd/protocol"
	"rocketd/protocol/header"
	"rocketd/remoting"
	"rocketd/remoting/remotingtest"
)

func newClient(t *testing.T, change func(*remoting.ClientConfig), mux *remoting.Mux) *remoting.Client {
	t.Helper()
	cfg := remoting.DefaultClientConfig()
	if change != nil {
		change(&cfg)
	}
	c := remoting.NewClient(cfg, mux, remotingtest.Log(t))
	t.Cleanup(c.Close)
	return c
}

// TestClient: calls of many goroutines share one connection, which is made again when it is gone.
func TestClient(t *testing.T) {
	held := make(chan *remoting.Call, 1)
	s := remotingtest.Start(t, testMux(held))
	c := newClient(t, nil, nil)
	addr := fmt.Sprintf("localhost:%d", s.Port()) // a name
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			topic := fmt.Sprint("Topic", i)
			a, err := c.Call(t.Context(), addr, req(echo, 0, topic, []byte("x")), remotingtest.Patience)
			if err != nil || a.Remark != topic || string(a.Body) != "x" {
				t.Errorf("answer %+v, %v", a, err)
			}
		})
	}
	wg.Wait()
	if s.Connections() != 1 || c.Connections() != 1 || c.Stats().Accepted != 1 {
		t.Errorf("%d connections", s.Connections())
	}
	if err := c.Oneway(t.Context(), addr, protocol.NewRequest(hold, nil, nil)); err != nil {
		t.Fatal(err)
	}
	call := <-held
	if !call.Command().IsOneway() {
		t.Error("not oneway")
	}
	call.Conn().Close()
	remotingtest.Eventually(t, "the client has noticed", func() bool { return c.Connections() == 0 })
	if _, err := c.Call(t.Context(), addr, req(echo, 0, "again", nil), remotingtest.Patience); err != nil {
		t.Error(err)
	}
	c.Close()
	if _, err := c.Call(t.Context(), addr, req(echo, 0, "closed", nil), remotingtest.Patience); !errors.Is(err, remoting.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

// TestClientServes: requests that come on a client's connection are served by its Mux.
func TestClientServes(t *testing.T) {
	held := make(chan *remoting.Call, 1)
	s := remotingtest.Start(t, testMux(held))
	m := remoting.NewMux(nil)
	remoting.Handle(m, protocol.NotifyConsumerIdsChanged, remoting.Inline, func(c *remoting.Call, r *header.NotifyConsumerIdsChangedRequest) (*remoting.Command, error) {
		return c.Answer(protocol.Success, "group "+r.ConsumerGroup, nil), nil
	})
	c := newClient(t, nil, m)
	if err := c.Oneway(t.Context(), remotingtest.Addr(s), protocol.NewRequest(hold, nil, nil)); err != nil {
		t.Fatal(err)
	}
	conn := (<-held).Conn()
	a, err := conn.Call(t.Context(), protocol.NewRequest(protocol.NotifyConsumerIdsChanged, &header.NotifyConsumerIdsChangedRequest{ConsumerGroup: "g"}, nil), remotingtest.Patience)
	if err != nil || a.Remark != "group g" {
		t.Errorf("answer %+v, %v", a, err)
	}
	// Without a Mux nobody answers.
	silent := newClient(t, nil, nil)
	if err := silent.Oneway(t.Context(), remotingtest.Addr(s), protocol.NewRequest(hold, nil, nil)); err != nil {
		t.Fatal(err)
	}
	conn = (<-held).Conn()
	if _, err := conn.Call(t.Context(), protocol.NewRequest(protocol.NotifyConsumerIdsChanged, nil, nil), 20*time.Millisecond); !errors.Is(err, remoting.ErrTimeout) {
		t.Errorf("error %v", err)
	}
}

// TestClientTimeout: the connection is closed after a time-out when so configured.
func TestClientTimeout(t *testing.T) {
	for _, closes := range []bool{true, false} {
		held := make(chan *remoting.Call, 1)
		s := remotingtest.Start(t, testMux(held))
		c := newClient(t, func(cfg *remoting.ClientConfig) { cfg.ClientCloseSocketIfTimeout = closes }, nil)
		begin := time.Now()
		_, err := c.Call(t.Context(), remotingtest.Addr(s), protocol.NewRequest(hold, nil, nil), 30*time.Millisecond)
		if !errors.Is(err, remoting.ErrTimeout) || !strings.Contains(err.Error(), remotingtest.Addr(s)) {
			t.Errorf("error %v", err)
		}
		if d := time.Since(begin); d < 30*time.Millisecond || d > remotingtest.Patience/2 {
			t.Errorf("timed out after %v", d)
		}
		<-held
		if closes {
			remotingtest.Eventually(t, "connection closed", func() bool { return s.Connections() == 0 })
		} else if s.Connections() != 1 {
			t.Error("connection closed")
		}
	}
}

func TestClientRefused(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ln.Close()
	c := newClient(t, nil, nil)
	for range 2 {
		_, err = c.Call(t.Context(), ln.Addr().String(), req(echo, 0, "T", nil), time.Second)
		if !errors.Is(err, syscall.ECONNREFUSED) || !strings.Contains(err.Error(), "connect to "+ln.Addr().String()) {
			t.Errorf("error %v", err)
		}
	}
	for _, addr := range []string{"no-port", "127.0.0.1:notaport", ""} {
		if _, err := c.Call(t.Context(), addr, req(echo, 0, "T", nil), time.Second); err == nil {
			t.Errorf("no error for address %q", addr)
		}
	}
}

// TestClientConnectTimeout dials a server whose queue of connections is full: the system drops what
// comes further. One who waits meanwhile does not wait longer than his own time.
func TestClientConnectTimeout(t *testing.T) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	if err := unix.Listen(fd, 0); err != nil {
		t.Fatal(err)
	}
	sa, _ := unix.Getsockname(fd)
	addr := fmt.Sprintf("127.0.0.1:%d", sa.(*unix.SockaddrInet4).Port)
	for range 3 {
		if nc, err := net.DialTimeout("tcp", addr, 50*time.Millisecond); err == nil {
			defer nc.Close()
		}
	}
	c := newClient(t, func(cfg *remoting.ClientConfig) { cfg.ConnectTimeoutMillis = 300 }, nil)
	var wg sync.WaitGroup
	begin := time.Now()
	wg.Go(func() {
		_, err := c.Call(t.Context(), addr, req(echo, 0, "T", nil), time.Minute)
		if d := time.Since(begin); err == nil || d < 250*time.Millisecond || d > remotingtest.Patience/2 {
			t.Errorf("error %v after %v", err, d)
		}
	})
	wg.Go(func() {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		_, err := c.Call(ctx, addr, req(echo, 0, "T", nil), time.Minute)
		if d := time.Since(begin); err == nil || d > remotingtest.Patience/2 {
			t.Errorf("error %v after %v", err, d)
		}
	})
	wg.Wait()
}

// TestClientIdle: an idle connection is closed by its client, too.
func TestClientIdle(t *testing.T) {
	s := remotingtest.Start(t, testMux(nil))
	c := newClient(t, nil, nil)
	if _, err := c.Call(t.Context(), remotingtest.Addr(s), req(echo, 0, "T", nil), remotingtest.Patience); err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	remotingtest.Eventually(t, "idle connection closed", func() bool {
		c.Sweep(now)
		c.Sweep(now.Add(121 * time.Second))
		return c.Connections() == 0
	})
	remotingtest.Eventually(t, "the server has noticed", func() bool { return s.Connections() == 0 })
}

// TestClientCloses gives its callers an error, whatever they wait for.
func TestClientCloses(t *testing.T) {
	held := make(chan *remoting.Call, 1)
	s := remotingtest.Start(t, testMux(held))
	c := newClient(t, nil, nil)
	failed := make(chan error, 1)
	go func() {
		_, err := c.Call(t.Context(), remotingtest.Addr(s), protocol.NewRequest(hold, nil, nil), time.Minute)
		failed <- err
	}()
	<-held
	c.Close()
	if err := <-failed; !errors.Is(err, remoting.ErrClosed) {
		t.Errorf("error %v", err)
	}
}
