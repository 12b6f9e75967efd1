package compat

// FieldName is the rule by which Go fields and Java fields meet, in headers, bodies and properties: the
// Go name with its first letter lowered (QueueId, queueId).
func FieldName(goName string) string {
	if goName == "" || goName[0] < 'A' || goName[0] > 'Z' {
		return goName
	}
	return string(goName[0]+'a'-'A') + goName[1:]
}
