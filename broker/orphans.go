package broker

// shownOrphans is how many topics a line of the log names.
const shownOrphans = 50

// warnOrphans tells of topics that have messages and are not in the table, so that nobody can pull them: their file
// was lost, or was never written before a crash. None is created: how many queues it had is not known.
func (b *Broker) warnOrphans() {
	var unknown []string
	for _, topic := range b.store.Topics() {
		if _, ok := b.topics.Lookup(topic); !ok && !b.topics.IsSystem(topic) {
			unknown = append(unknown, topic)
		}
	}
	if n := len(unknown); n > 0 {
		b.log.Warn("TOPICS WITH MESSAGES ARE NOT IN topics.json: create them again, with as many queues as before, to consume these",
			"count", n, "topics", unknown[:min(n, shownOrphans)])
	}
}
