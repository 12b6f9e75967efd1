package house

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestNoticeIsOfTheModulesBuiltIn fails when a module came, went or changed its version or licence, and when a licence is none that
// Apache-2.0 permits.
func TestNoticeIsOfTheModulesBuiltIn(t *testing.T) {
	r, err := root()
	if err != nil {
		t.Fatal(err)
	}
	all, err := builtIn(r)
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(r, "NOTICE")
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	head, _, ok := strings.Cut(string(b), noticeMark)
	if !ok {
		t.Fatalf("NOTICE lacks the line %q", noticeMark)
	}
	want := head + noticeMark + noticeOf(all)
	switch {
	case want == string(b):
	case *update:
		if err := os.WriteFile(name, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Error("NOTICE is not of the modules that are built in: run go test ./conformance/house -run Notice -update")
	}
}

const (
	bsdGrant = `Copyright (c) 2020 Somebody. Redistribution and use in source and binary forms, with or without
> modification, are permitted provided that the following conditions are met: 1. Redistributions of source code must retain
the above copyright notice. 2. Redistributions in binary form must reproduce the above copyright notice, this list of conditions
and the following disclaimer in the documentation and/or other materials provided with the distribution.`
	mitGrant = `Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated documentation
files (the "Software"), to deal in the Software. The above copyright notice and this permission notice shall be included in all
copies or substantial portions of the Software.`
)

func TestLicencesThatApachePermits(t *testing.T) {
	r, err := root()
	if err != nil {
		t.Fatal(err)
	}
	apache, err := os.ReadFile(filepath.Join(r, "LICENSE"))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ name, text, want string }{
		{"Apache", string(apache), "Apache-2.0"},
		{"a mention of Apache", "Licensed under the Apache License, Version 2.0, January 2004", ""},
		{"MIT", mitGrant, "MIT"},
		{"half of MIT", mitGrant[:150], ""},
		{"BSD of two clauses", bsdGrant, "BSD-2-Clause"},
		{"BSD of three", bsdGrant + " 3. Neither the name of Somebody may be used.", "BSD-3-Clause"},
		{"BSD of four", bsdGrant + " 3. All advertising materials must say so. 4. Neither the name of Somebody may be used.", ""},
		{"ISC", "Permission to use, copy, modify, and/or distribute this software for any purpose with or without fee is hereby granted", "ISC"},
		{"MIT or GPL", mitGrant + " Parts are under the GNU General Public License.", ""},
		{"Mozilla", "Mozilla Public License Version 2.0", ""},
		{"Business Source", "Business Source License 1.1", ""},
		{"nothing", "", ""},
	} {
		if got := licenceOf(tt.text); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestReadingAComponentsLicence(t *testing.T) {
	for _, tt := range []struct {
		name    string
		files   map[string]string
		licence string
		texts   []string
		failure string
	}{
		{"a licence and a notice", map[string]string{"LICENSE.md": mitGrant + " \r\n", "NOTICE": "By Somebody.  \n\n"}, "MIT", []string{mitGrant + "\n", "By Somebody.\n"}, ""},
		{"two licences", map[string]string{"LICENSE": mitGrant, "LICENSE-BSD": bsdGrant}, "MIT and BSD-2-Clause", []string{mitGrant + "\n", bsdGrant + "\n"}, ""},
		{"code of that name", map[string]string{"license.go": "package license"}, "", nil, "no licence"},
		{"one of two refused", map[string]string{"LICENSE": mitGrant, "COPYING": "GNU General Public License"}, "", nil, "its COPYING is no licence"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := component{Name: "example.org/a", Version: "v1.0.0", Dir: t.TempDir()}
			for name, text := range tt.files {
				if err := os.WriteFile(filepath.Join(c.Dir, name), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			err := c.read()
			if tt.failure != "" {
				if err == nil || !strings.Contains(err.Error(), tt.failure) {
					t.Errorf("got %v, want %q", err, tt.failure)
				}
				return
			}
			if err != nil || c.Licence != tt.licence || strings.Join(c.Texts, "|") != strings.Join(tt.texts, "|") {
				t.Errorf("got %v, %+v", err, c)
			}
		})
	}
}
