package message

import (
	"encoding/base64"
	"testing"
)

func TestTimerCode(t *testing.T) {
	for _, c := range []struct {
		properties string
		want       int64
	}{
		{"", 0},
		{"TAGS\x01a", 0},
		{"TIMER_OUT_MS\x011795977920000", 1795977920000},
		{"a\x01b\x02TIMER_OUT_MS\x011795977920000\x02TIMER_DEL_UNIQKEY\x01T+k\x02", -1795977920000},
		{"TIMER_OUT_MS\x015", 0},           // looks like a hash
		{"TIMER_OUT_MS\x01-1795977920", 0}, // no time
		{"TIMER_OUT_MS\x01-1795977920000", 0},
		{"TIMER_OUT_MS\x019223372036854775808", 0},
		{"TIMER_OUT_MS\x01x", 0},
	} {
		if got := TimerCode(c.properties); got != c.want {
			t.Errorf("%q: %d, want %d", c.properties, got, c.want)
		}
	}
	for code, want := range map[int64]bool{0: false, 1<<31 - 1: false, -1 << 31: false, 1 << 31: true, -1<<31 - 1: true, -1 << 63: false} {
		if IsTimerCode(code) != want {
			t.Errorf("IsTimerCode(%d) = %v", code, !want)
		}
	}
}

// The text of the handle is that of RecallMessageHandle of 5.3.3.
func TestRecallHandle(t *testing.T) {
	h := RecallHandle{"T", "broker-a", "1795977920001", "7F000001"}
	text := "djEgVCBicm9rZXItYSAxNzk1OTc3OTIwMDAxIDdGMDAwMDAx"
	if h.String() != text {
		t.Errorf("%s, want %s", h, text)
	}
	if got, ok := ParseRecallHandle(text); !ok || got != h {
		t.Errorf("%v %v", got, ok)
	}
	padded := RecallHandle{"T", "b", "17", "k"}.String()
	if padded != "djEgVCBiIDE3IGs=" {
		t.Errorf("%s", padded)
	}
	for _, good := range []string{padded, "djEgVCBiIDE3IGs", base64.URLEncoding.EncodeToString([]byte("v1 T b 17 k more"))} {
		if got, ok := ParseRecallHandle(good); !ok || got.UniqKey != "k" {
			t.Errorf("%q: %v %v", good, got, ok)
		}
	}
	for _, bad := range []string{"", "%", "djEg+", base64.URLEncoding.EncodeToString([]byte("v2 T b 17 k")), base64.URLEncoding.EncodeToString([]byte("v1 T b 17")), base64.URLEncoding.EncodeToString([]byte("v1 T b 17 "))} {
		if _, ok := ParseRecallHandle(bad); ok {
			t.Errorf("%q is read", bad)
		}
	}
}
