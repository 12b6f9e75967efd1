package protocol

import "testing"

// The names and numbers are those of MQVersion of 4.9.8.
func TestOldVersionName(t *testing.T) {
	for v, want := range map[int32]string{
		0: "V3_0_0_SNAPSHOT", 14: "V3_0_0_BETA9", 15: "V3_0_0_FINAL", 16: "V3_0_1_SNAPSHOT", 17: "V3_0_1", 27: "V3_0_6",
		V3_0_7_SNAPSHOT: "V3_0_7_SNAPSHOT", 34: "V3_0_10_SNAPSHOT", 45: "V3_0_15", 46: "V3_1_0_SNAPSHOT", 61: "V3_1_7",
		V3_1_8_SNAPSHOT: "V3_1_8_SNAPSHOT", 63: "V3_1_8", 64: "64", 409: "409", -1: "-1",
	} {
		if got := OldVersionName(v); got != want {
			t.Errorf("version %d is %s, want %s", v, got, want)
		}
	}
}
