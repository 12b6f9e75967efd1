package remoting

// Inline is the lane of handlers that never wait: they run on the connection's goroutine, in the order
// of arrival.
var Inline = &Lane{}

// Lane is a bounded pool that runs handlers which may be slow. A full queue is answered SYSTEM_BUSY
// with the official [OVERLOAD] remark.
type Lane struct{ skeleton struct{} }

// NewLane makes a lane of workers goroutines (started on demand, ended when idle) and a queue bound.
func NewLane(name string, workers, queue int) *Lane { panic("skeleton") }

// Queued is the number of calls waiting for a worker, for the runtime information.
func (l *Lane) Queued() int { panic("skeleton") }

// Capacity is the queue bound.
func (l *Lane) Capacity() int { panic("skeleton") }

// Close refuses further calls and waits for those that run.
func (l *Lane) Close() { panic("skeleton") }
