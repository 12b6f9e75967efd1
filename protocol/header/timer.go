package header

// RecallMessageRequest is the header of requests RECALL_MESSAGE (5.3.3).
type RecallMessageRequest struct {
	ProducerGroup string
	Topic         string `rmq:",required"`
	RecallHandle  string // see message.RecallHandle
	BrokerName    string `rmq:"bname"` // not used by the server
}

// RecallMessageResponse is the header of answers to RECALL_MESSAGE.
type RecallMessageResponse struct {
	MsgId string // the unique key of the message that is recalled
}
