package vfs

// Locked tells whether another holds the lock that FS.Lock takes, without taking it or making the file. A file system
// that can't tell says no.
func Locked(fsys FS, name string) (bool, error) {
	f, ok := fsys.(interface {
		Locked(name string) (bool, error)
	})
	if !ok {
		return false, nil
	}
	return f.Locked(name)
}
