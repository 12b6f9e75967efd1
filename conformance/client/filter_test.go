//go:build conformance

package client

import (
	"fmt"
	"testing"

	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
)

// The Go client asks no broker whether it can serve an expression; it subscribes, and pulls with what its heartbeat has said.
func TestSQLFilter(t *testing.T) {
	t.Parallel()
	topic := server.newTopic(t, "SQLFilter", 4)
	p := server.newProducer(t)
	bodies := make([]string, 40)
	for i := range bodies {
		bodies[i] = fmt.Sprint("numbered ", i)
		m := primitive.NewMessage(topic, []byte(bodies[i]))
		m.WithProperty("n", fmt.Sprint(i))
		if i%2 == 0 {
			m.WithProperty("even", "yes")
		}
		send(t, p, m)
	}
	for _, c := range []struct {
		name, expression string
		want             []string
	}{
		{"Between", "n BETWEEN 10 AND 12", bodies[10:13]},
		{"Null", "even IS NULL AND n > 34.5", []string{bodies[35], bodies[37], bodies[39]}},
		{"In", "n IN ('0', '7') OR NOT (n < 39)", []string{bodies[0], bodies[7], bodies[39]}},
		{"All", "n IS NOT NULL", bodies},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var in inbox
			server.newPush(t, subscription{topic: topic, group: "G-SQLFilter-" + c.name, listen: in.collect,
				selector: &consumer.MessageSelector{Type: consumer.SQL92, Expression: c.expression}})
			in.expect(t, c.want)
		})
	}
}
