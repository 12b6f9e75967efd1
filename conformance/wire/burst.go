package wire

// SendAll sends requests with one write, so that the server may find them all at once. When the write fails the
// requests count as sent: a part of them may have arrived.
func (c *Conn) SendAll(frames []*Frame) ([]*Pending, error) {
	var bytes []byte
	waiting := make([]*Pending, len(frames))
	c.mu.Lock()
	for i, f := range frames {
		c.mu.next++
		f.Opaque = c.mu.next
		waiting[i] = &Pending{conn: c, answer: make(chan *Frame, 1)}
		c.mu.answers[f.Opaque] = waiting[i].answer
	}
	c.mu.Unlock()
	for _, f := range frames {
		bytes = append(bytes, f.Encode()...)
	}
	return waiting, c.Write(bytes)
}
