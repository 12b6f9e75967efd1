package store

// Config is the MessageStoreConfig of 4.9.8: field FlushDiskType is key flushDiskType of broker.conf.
// Units and defaults as spec/broker-config.tsv.
type Config struct {
	StorePathRootDir   string // ROOT of the store
	StorePathCommitLog string // "" = ROOT/commitlog
}

// DefaultConfig returns the official defaults for a store at root.
func DefaultConfig(root string) Config { return Config{StorePathRootDir: root} }
