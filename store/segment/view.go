package segment

// View holds one file open for reading while it may be deleted. Release must follow, once.
type View struct{ f *File }

// Start is the offset of the file's first byte.
func (v View) Start() int64 { return v.f.Start() }

// End is the offset behind the file's last byte.
func (v View) End() int64 { return v.f.End() }

// Path is the file's name with its folder.
func (v View) Path() string { return v.f.Path() }

// ReadAt is File.ReadAt.
func (v View) ReadAt(b []byte, offset int64) error { return v.f.ReadAt(b, offset) }

// ReadAhead is File.ReadAhead.
func (v View) ReadAhead(offset, size int64) { v.f.ReadAhead(offset, size) }

// CopyAt is File.CopyAt.
func (v View) CopyAt(b []byte, offset int64) error { return v.f.CopyAt(b, offset) }

// Sync is File.Sync.
func (v View) Sync() error { return v.f.Sync() }

// Release ends the reading.
func (v View) Release() { _ = v.f.release() }
