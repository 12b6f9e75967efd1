package main

import (
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
)

// lookupUser finds a user by id; the tests replace it.
var lookupUser = user.LookupId

// homeDir is the home directory as Java knows it (user.home): that of the user's entry in the password file, and
// $HOME only when there is none. Under sudo or su these differ, and the store would be another. What user.home says in the
// options of the JVM goes before both; of several the last. It is absolute. key is what the error tells the user to set.
func homeDir(key string, options ...jvmOptions) (string, error) {
	for _, o := range slices.Backward(options) {
		if o.home != "" {
			return filepath.Abs(o.home)
		}
	}
	uid := strconv.Itoa(os.Getuid())
	if u, err := lookupUser(uid); err == nil && filepath.IsAbs(u.HomeDir) {
		return u.HomeDir, nil
	}
	if home := os.Getenv("HOME"); home != "" {
		return filepath.Abs(home)
	}
	return "", fmt.Errorf("where files go is unknown: user id %s has no entry in the password file, and $HOME is not set; "+
		"set %s in the configuration file (-c)", uid, key)
}
