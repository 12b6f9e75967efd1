package store

// defaultMemory is what the official server takes for the memory of a machine that does not tell.
const defaultMemory = 24 << 30
