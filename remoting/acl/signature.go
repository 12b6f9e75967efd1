package acl

import (
	"crypto/sha1"
	"crypto/subtle"
	"encoding"
	"encoding/base64"
	"hash"
	"sync"

	"rocketd/protocol"
)

// The ext fields of access control (SessionCredentials of 4.9.8). All others are signed but the last.
const (
	fieldAccessKey = "AccessKey"
	fieldSignature = "Signature"
	fieldUniqueKey = "_UNIQUE_KEY_QUERY"
)

// fieldToken is the temporary token that a client may sign by (SessionCredentials of 4.9.8).
const fieldToken = "SecurityToken"

// Unsigned is the fields of a request that is handed on to a client, without what its sender has proved himself by. A signature
// is of the values alone, one behind the other, and neither of the code nor of the keys: who gets an administrator's, and has
// chosen a value in it, such as his client id, has one for a request of his own. The official broker hands it on (compat).
func Unsigned(fields []protocol.Field) []protocol.Field {
	kept := make([]protocol.Field, 0, len(fields))
	for _, f := range fields {
		if f.Key != fieldAccessKey && f.Key != fieldSignature && f.Key != fieldToken {
			kept = append(kept, f)
		}
	}
	return kept
}

// signatureSize is the length of a signature: Base64 of 20 bytes.
const signatureSize = 28

// signingKey is a secret, made ready: the states of SHA-1 behind the two padded keys of HMAC (RFC 2104). The secret
// itself is not kept.
type signingKey struct{ inner, outer []byte }

func newSigningKey(secret string) signingKey {
	key := []byte(secret)
	if len(key) > sha1.BlockSize {
		sum := sha1.Sum(key)
		key = sum[:]
	}
	state := func(pad byte) []byte {
		block := make([]byte, sha1.BlockSize)
		copy(block, key)
		for i := range block {
			block[i] ^= pad
		}
		h := sha1.New()
		h.Write(block)
		s, err := h.(encoding.BinaryMarshaler).MarshalBinary()
		if err != nil {
			panic("acl: " + err.Error()) // SHA-1 of the standard library always can
		}
		return s
	}
	return signingKey{state(0x36), state(0x5c)}
}

// signer is the room that one signature needs, and what it knows of the signatures before. It is taken from signers.
type signer struct {
	hash   hash.Hash
	orders [16]fieldOrder // by request code
	values []byte
	sum    [sha1.Size]byte
	text   [signatureSize]byte
	given  [signatureSize]byte
}

var signers = sync.Pool{New: func() any { return &signer{hash: sha1.New()} }}

// keptValues is how much room for values a signer keeps.
const keptValues = 64 << 10

// joinedBody is the longest body that is copied behind the values before both are hashed.
const joinedBody = 4 << 10

// verify tells whether cmd is signed with key. The stock Java client signs the field that tells a query by unique key,
// the official server leaves it out: either is right (compat).
func (k *signingKey) verify(cmd *protocol.Command, signature string) bool {
	if len(signature) != signatureSize {
		return false
	}
	s := signers.Get().(*signer)
	defer s.release()
	copy(s.given[:], signature)
	o := s.order(cmd)
	if subtle.ConstantTimeCompare(s.sign(k, cmd, o, false), s.given[:]) == 1 {
		return true
	}
	return o.unique >= 0 && subtle.ConstantTimeCompare(s.sign(k, cmd, o, true), s.given[:]) == 1
}

// order is the order of a request's fields, valid until the next call.
func (s *signer) order(cmd *protocol.Command) *fieldOrder {
	o := &s.orders[uint32(cmd.Code)%uint32(len(s.orders))]
	if !o.fits(cmd.Fields) {
		o.sort(cmd.Fields)
	}
	return o
}

// release gives the room back, without what a very large request made it grow to.
func (s *signer) release() {
	if cap(s.values) > keptValues {
		s.values = nil
	}
	signers.Put(s)
}

// sign makes the signature of a request's fields, in their order, and its body; of the field of a query by unique key
// only when unique is true.
func (s *signer) sign(k *signingKey, cmd *protocol.Command, o *fieldOrder, unique bool) []byte {
	values := s.values[:0]
	for _, at := range o.places {
		if at != o.unique || unique {
			values = append(values, cmd.Fields[at].Value...)
		}
	}
	body := cmd.Body
	if len(body) <= joinedBody { // one call of the hash costs less than two
		values = append(values, body...)
		body = nil
	}
	s.values = values
	state := s.hash.(encoding.BinaryUnmarshaler)
	must(state.UnmarshalBinary(k.inner))
	s.hash.Write(s.values)
	s.hash.Write(body)
	sum := s.hash.Sum(s.sum[:0])
	must(state.UnmarshalBinary(k.outer))
	s.hash.Write(sum)
	base64.StdEncoding.Encode(s.text[:], s.hash.Sum(s.sum[:0]))
	return s.text[:]
}

// must is for states that SHA-1 itself has written.
func must(err error) {
	if err != nil {
		panic("acl: " + err.Error())
	}
}
