package wire

import (
	"crypto/hmac"
	"crypto/sha1"
	"encoding/base64"
	"slices"
)

// Sign adds AccessKey and Signature as the stock Java client does, and returns the frame: HMAC-SHA1 of all values of the
// ext fields in the order of their keys, then the body.
func (f *Frame) Sign(accessKey, secretKey string) *Frame {
	f.Without("Signature").Set("AccessKey", accessKey)
	return f.Set("Signature", f.signature(secretKey))
}

func (f *Frame) signature(secretKey string, without ...string) string {
	mac := hmac.New(sha1.New, []byte(secretKey))
	for _, name := range f.ExtNames() { // the names are ASCII, so bytes have Java's order
		if name != "Signature" && !slices.Contains(without, name) {
			mac.Write([]byte(f.Ext[name]))
		}
	}
	mac.Write(f.Body)
	return base64.StdEncoding.EncodeToString(mac.Sum(nil))
}
