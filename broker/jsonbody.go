package broker

import (
	"bytes"
	"runtime"
	"sync/atomic"

	"rocketd/compat"
	"rocketd/protocol"
	"rocketd/remoting"
)

// largeJSON is from how many bytes on a body is large: a few bytes of JSON can become a struct of a hundred and more, so that a
// frame of 16 MiB takes a gigabyte while it is read. As many large ones as there are processors are read at once.
const largeJSON = 256 << 10

// jsonBodies bounds what reading JSON takes. The zero value is ready.
type jsonBodies struct {
	reading atomic.Int32 // large ones
	refused atomic.Int64
}

// decodeBody reads a request's JSON body. A body that is absent or broken is answered SYSTEM_ERROR, like the
// official server's exception, and so is one that is larger than maxJsonBytes.
func (b *Broker) decodeBody(c *remoting.Call, into any) error {
	data := c.Command().Body
	if len(data) == 0 {
		return protocol.Errorf(protocol.SystemError, "the request has no body")
	}
	if most := b.config().MaxJsonBytes; most > 0 && len(data) > most {
		b.bodies.refused.Add(1)
		return protocol.Errorf(protocol.SystemError, "the request's body has %d bytes, more than maxJsonBytes=%d", len(data), most)
	}
	if len(data) > largeJSON {
		defer b.bodies.reading.Add(-1)
		if int(b.bodies.reading.Add(1)) > max(2, runtime.GOMAXPROCS(0)) {
			b.bodies.refused.Add(1)
			return protocol.Errorf(protocol.SystemBusy, "too many requests with large bodies at once")
		}
	}
	if string(bytes.TrimSpace(data)) == "null" { // no object: the official handlers fall over it
		return protocol.Errorf(protocol.SystemError, "the request's body is null")
	}
	if err := compat.Unmarshal(data, into); err != nil {
		return protocol.Errorf(protocol.SystemError, "the request's body can't be read: %v", err)
	}
	return nil
}
