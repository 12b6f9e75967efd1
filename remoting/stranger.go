package remoting

// stranger says which other protocol a connection speaks whose first bytes are no length of a frame, "" when it is none
// that is known: somebody has pointed a browser, a health check, a load balancer or a client of another kind at this port.
func stranger(first [4]byte) string {
	switch string(first[:]) {
	case "PRI ":
		return ": HTTP/2, perhaps a gRPC client of RocketMQ 5, which needs the proxy of 5.x; here are served clients of the remoting protocol"
	case "GET ", "HEAD", "POST", "PUT ", "OPTI", "CONN":
		return ": HTTP, which is not spoken here"
	case "PROX", "\r\n\r\n":
		return ": the PROXY protocol of a load balancer, which is not spoken here; switch it off there"
	}
	return ""
}
