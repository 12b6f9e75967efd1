package body

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"rocketd/compat"
)

// maxInflated bounds the inflated body of REGISTER_BROKER: a frame of 16 MiB could be made to inflate to a
// thousand times that. 400,000 topics take less.
const maxInflated = 64 << 20

// RegisterBrokerBody is the body of REGISTER_BROKER.
type RegisterBrokerBody struct {
	FilterServerList            []string // always empty in 4.9.8
	TopicConfigSerializeWrapper TopicConfigSerializeWrapper
}

// EncodeRegister writes b as JSON, or compressed (the request's header must say so): deflated in the zlib
// format from
//
//	+-------+--------------------+-------------+
//	| n (4) | data version, JSON | topics (4)  |
//	+-------+--------------------+-------------+
//	| n (4) | "name readQueueNums writeQueueNums perm topicFilterType" | each topic
//	+-------+----------------------------------------------------------+
//	| n (4) | filterServerList, JSON |
//	+-------+------------------------+
//
// with big-endian integers. The order flag and topicSysFlag have no place in it.
func EncodeRegister(b *RegisterBrokerBody, compressed bool) ([]byte, error) {
	if !compressed {
		return compat.Marshal(b)
	}
	version, err := compat.Marshal(b.TopicConfigSerializeWrapper.DataVersion)
	if err != nil {
		return nil, err
	}
	servers, err := compat.Marshal(b.FilterServerList)
	if err != nil {
		return nil, err
	}
	table := b.TopicConfigSerializeWrapper.TopicConfigTable
	raw := appendSized(nil, version)
	raw = binary.BigEndian.AppendUint32(raw, uint32(len(table)))
	for _, name := range slices.Sorted(maps.Keys(table)) {
		c := table[name]
		raw = appendSized(raw, fmt.Appendf(nil, "%s %d %d %d %s", c.TopicName, c.ReadQueueNums, c.WriteQueueNums, c.Perm, c.TopicFilterType))
	}
	raw = appendSized(raw, servers)
	var out bytes.Buffer
	z, err := zlib.NewWriterLevel(&out, zlib.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err = z.Write(raw); err != nil {
		return nil, err
	}
	if err = z.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

func appendSized(dst, text []byte) []byte {
	return append(binary.BigEndian.AppendUint32(dst, uint32(len(text))), text...)
}

// Bounds of the compressed form's parts, so that what is kept stays within a few times what was inflated.
const (
	maxTopicText = 1 << 10   // name, three numbers and filter type take less than 200
	maxTopics    = 400_000   // deflated they fit 2 MiB, and each is some 200 bytes in the table
	maxPartText  = 256 << 10 // data version and filter servers
)

// DecodeRegister reads the body of REGISTER_BROKER in either form. More than 64 MiB of inflated data, more than
// 400,000 topics, a topic's text of more than 1 KiB and other parts of more than 256 KiB are errors.
func DecodeRegister(data []byte, compressed bool) (*RegisterBrokerBody, error) {
	b := new(RegisterBrokerBody)
	if !compressed {
		return b, compat.Unmarshal(data, b)
	}
	z, err := zlib.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	defer z.Close()
	in := inflated{r: io.LimitReader(z, maxInflated)}
	version := in.text(maxPartText)
	topics := in.number()
	if topics > maxTopics && in.err == nil {
		in.err = fmt.Errorf("%d topics, more than %d", topics, maxTopics)
	}
	table := make(map[string]*TopicConfig)
	for n := int32(0); n < topics && in.err == nil; n++ {
		c, err := parseTopicConfig(string(in.text(maxTopicText)))
		if err != nil && in.err == nil {
			in.err = err
		}
		table[c.TopicName] = &c
	}
	servers := in.text(maxPartText)
	if in.err != nil {
		return nil, fmt.Errorf("compressed registration: %w", in.err)
	}
	b.TopicConfigSerializeWrapper.TopicConfigTable = table
	if err := compat.Unmarshal(version, &b.TopicConfigSerializeWrapper.DataVersion); err != nil {
		return nil, fmt.Errorf("data version of a compressed registration: %w", err)
	}
	if err := compat.Unmarshal(servers, &b.FilterServerList); err != nil {
		b.FilterServerList = nil // 4.9.8 logs it and goes on
	}
	return b, nil
}

// inflated reads sized texts and keeps the first error.
type inflated struct {
	r    io.Reader
	size [4]byte
	err  error
}

func (in *inflated) number() int32 {
	if in.err == nil {
		_, in.err = io.ReadFull(in.r, in.size[:])
	}
	if in.err != nil {
		return 0
	}
	return int32(binary.BigEndian.Uint32(in.size[:]))
}

// text reads one text of at most limit bytes.
func (in *inflated) text(limit int32) []byte {
	n := in.number()
	if in.err == nil && n < 0 {
		in.err = fmt.Errorf("size %d", n)
	}
	if in.err == nil && n > limit {
		in.err = fmt.Errorf("text of %d bytes, more than %d", n, limit)
	}
	if in.err != nil {
		return nil
	}
	b := make([]byte, n)
	if _, in.err = io.ReadFull(in.r, b); in.err == io.EOF {
		in.err = io.ErrUnexpectedEOF
	}
	return b
}

// parseTopicConfig reads a topic's text, as TopicConfig#decode of 4.9.8.
func parseTopicConfig(text string) (TopicConfig, error) {
	var c TopicConfig
	c.Defaults()
	words := strings.SplitN(text, " ", 6) // one too many shows, and more say nothing
	if len(words) != 5 {
		return c, fmt.Errorf("topic %.200q has not 5 words but %d", text, strings.Count(text, " ")+1)
	}
	c.TopicName, c.TopicFilterType = words[0], words[4]
	for i, to := range []*int32{&c.ReadQueueNums, &c.WriteQueueNums, &c.Perm} {
		n, err := strconv.ParseInt(words[i+1], 10, 32)
		if err != nil {
			return c, fmt.Errorf("topic %.200q: %w", text, err)
		}
		*to = int32(n)
	}
	return c, nil
}
