package target

import (
	"os"
	"path/filepath"
	"testing"
)

func TestWritePropertiesEscapesBackslashAndSorts(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a", "broker.conf")
	if err := writeProperties(file, map[string]string{"b": "2", "a": `C:\store`}); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if want := "a=C:\\\\store\nb=2\n"; string(got) != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestSelected(t *testing.T) {
	for env, want := range map[string]Kind{"": Rocketd, "rocketd": Rocketd, "official": Official} {
		t.Setenv("CONFORMANCE_TARGET", env)
		if got, err := Selected(); err != nil || got != want {
			t.Errorf("%q: %q, %v", env, got, err)
		}
	}
	t.Setenv("CONFORMANCE_TARGET", "java")
	if _, err := Selected(); err == nil {
		t.Error("an unknown kind was taken")
	}
}

func TestPortBlocksAreExclusive(t *testing.T) {
	t.Setenv("CONFORMANCE_PORTS", "20984-20991") // beside the range that other tests take from meanwhile
	a, err := takePorts()
	if err != nil {
		t.Fatal(err)
	}
	b, err := takePorts()
	if err != nil {
		t.Fatal(err)
	}
	if a.first == b.first {
		t.Errorf("both got %d", a.first)
	}
	if _, err := takePorts(); err == nil {
		t.Error("a third block where two fit")
	}
	a.release()
	c, err := takePorts()
	if err != nil {
		t.Fatal(err)
	}
	if c.first != a.first {
		t.Errorf("got %d, want the released %d", c.first, a.first)
	}
	b.release()
	c.release()
}
