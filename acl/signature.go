package acl

import (
	"cmp"
	"crypto/sha1"
	"crypto/subtle"
	"encoding"
	"encoding/base64"
	"hash"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"rocketd/protocol"
)

// The ext fields of access control (SessionCredentials of 4.9.8). All others are signed but the last.
const (
	fieldAccessKey = "AccessKey"
	fieldSignature = "Signature"
	fieldUniqueKey = "_UNIQUE_KEY_QUERY"
)

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

// signer is the room that one signature needs. It is taken from signers.
type signer struct {
	hash   hash.Hash
	order  []orderedField
	last   []int32 // places of the fields of the request before, in their order
	values []byte
	sum    [sha1.Size]byte
	text   [signatureSize]byte
	given  [signatureSize]byte
}

var signers = sync.Pool{New: func() any { return &signer{hash: sha1.New()} }}

// keptValues is how much room for values a signer keeps.
const keptValues = 64 << 10

// keptFields is of how many fields an order is kept: the bits of a word.
const keptFields = 64

// joinedBody is the longest body that is copied behind the values before both are hashed.
const joinedBody = 4 << 10

// orderedField is a field with the beginning of its key, which decides nearly every comparison, and its place in the
// request.
type orderedField struct {
	begin uint64
	at    int32
	*protocol.Field
}

// compare orders fields with ASCII keys.
func (f orderedField) compare(g orderedField) int {
	return cmp.Or(cmp.Compare(f.begin, g.begin), strings.Compare(f.Key, g.Key), cmp.Compare(f.at, g.at))
}

// verify tells whether cmd is signed with key. The stock Java client signs the field that tells a query by unique key,
// the official server leaves it out: either is right (compat).
func (k *signingKey) verify(cmd *protocol.Command, signature string) bool {
	if len(signature) != signatureSize {
		return false
	}
	s := signers.Get().(*signer)
	defer s.release()
	copy(s.given[:], signature)
	unique := s.sort(cmd.Fields)
	if subtle.ConstantTimeCompare(s.sign(k, cmd.Body, false), s.given[:]) == 1 {
		return true
	}
	return unique && subtle.ConstantTimeCompare(s.sign(k, cmd.Body, true), s.given[:]) == 1
}

// release gives the room back, without what it pointed to.
func (s *signer) release() {
	clear(s.order)
	s.order = s.order[:0]
	if cap(s.values) > keptValues {
		s.values = nil
	}
	if cap(s.order) > 256 {
		s.order = nil
	}
	signers.Put(s)
}

// sort puts the fields into the order of Java's TreeMap, the later of two with one key last, and tells whether the
// field of a query by unique key is among them. It begins with the order of the request before, which a client's next
// request of the kind has too, so that mostly nothing moves.
func (s *signer) sort(fields []protocol.Field) (unique bool) {
	plain := true
	for len(s.last) < len(fields) {
		s.last = append(s.last, int32(len(s.last)))
	}
	for _, at := range s.last {
		if int(at) >= len(fields) {
			continue
		}
		f := &fields[at]
		if f.Key == fieldSignature {
			continue
		}
		o := orderedField{at: at, Field: f}
		if len(f.Key) == 1 {
			o.begin = uint64(f.Key[0]) << 56
			plain = plain && f.Key[0] < utf8.RuneSelf
		} else {
			for j := range min(len(f.Key), 8) {
				o.begin |= uint64(f.Key[j]) << (56 - 8*j)
			}
			plain = plain && ascii(f.Key)
			unique = unique || f.Key == fieldUniqueKey
		}
		s.order = append(s.order, o)
	}
	switch {
	case !plain:
		slices.SortFunc(s.order, func(a, b orderedField) int { return cmp.Or(compareUTF16(a.Key, b.Key), cmp.Compare(a.at, b.at)) })
	case len(s.order) > 32:
		slices.SortFunc(s.order, orderedField.compare)
	default:
		for i := 1; i < len(s.order); i++ {
			f := s.order[i]
			j := i
			for ; j > 0 && (s.order[j-1].begin > f.begin || s.order[j-1].begin == f.begin && s.order[j-1].compare(f) > 0); j-- {
				s.order[j] = s.order[j-1]
			}
			s.order[j] = f
		}
	}
	s.remember(len(fields))
	return unique
}

// remember keeps the order for the next request. Of a request with very many fields nothing is kept.
func (s *signer) remember(fields int) {
	if fields > keptFields {
		s.last = nil
		return
	}
	s.last = s.last[:0]
	seen := uint64(0)
	for i := range s.order {
		s.last = append(s.last, s.order[i].at)
		seen |= 1 << s.order[i].at
	}
	for at := range fields { // the signature
		if seen>>at&1 == 0 {
			s.last = append(s.last, int32(at))
		}
	}
}

// sign makes the signature of the sorted fields and a body.
func (s *signer) sign(k *signingKey, body []byte, unique bool) []byte {
	s.values = s.values[:0]
	for i := range s.order {
		f := s.order[i].Field
		if i+1 < len(s.order) && s.order[i+1].Key == f.Key || f.Key == fieldUniqueKey && !unique {
			continue
		}
		s.values = append(s.values, f.Value...)
	}
	if len(body) <= joinedBody { // one call of the hash costs less than two
		s.values = append(s.values, body...)
		body = nil
	}
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

func ascii(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// compareUTF16 orders texts as Java's String#compareTo: by UTF-16 code units, in which characters beyond the first
// plane come before those from U+E000 on.
func compareUTF16(a, b string) int {
	for a != "" && b != "" {
		x, n := utf8.DecodeRuneInString(a)
		y, m := utf8.DecodeRuneInString(b)
		if x != y {
			return cmp.Compare(unitOrder(x), unitOrder(y))
		}
		a, b = a[n:], b[m:]
	}
	return cmp.Compare(len(a), len(b))
}

func unitOrder(r rune) rune {
	switch {
	case r >= 0x10000:
		return r - 0x10000 + 0xd800
	case r >= 0xe000:
		return r + 0x200000
	}
	return r
}
