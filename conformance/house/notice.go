package house

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// noticeMark stands in NOTICE between what is written by hand and what dependencies ask to be told.
const noticeMark = "-------- Below: written by `go test ./conformance/house -run Notice -update` --------\n"

// platforms are those whose binaries NOTICE is true of. Modules differ by platform.
var platforms = []string{"linux/amd64", "linux/arm64"}

// component is a module that goes into the binary, or Go's own library.
type component struct {
	Name, Version string
	Dir           string // where its licence lies
	Licence       string // SPDX
	Texts         []string
}

// builtIn asks the Go tool which modules the packages of cmd/rocketd are from, on all platforms. They are in the module cache, or are
// brought there.
func builtIn(root string) ([]component, error) {
	found := map[string]component{}
	for _, platform := range platforms {
		goos, goarch, _ := strings.Cut(platform, "/")
		list := exec.Command("go", "list", "-deps", "-json=Module", "./cmd/rocketd")
		list.Dir, list.Env = root, append(os.Environ(), "GOOS="+goos, "GOARCH="+goarch, "CGO_ENABLED=0")
		out, err := list.Output()
		if err != nil {
			return nil, fmt.Errorf("go list for %s: %w%s", platform, err, complaint(err))
		}
		for d := json.NewDecoder(strings.NewReader(string(out))); ; {
			type origin struct{ Path, Version, Dir string }
			var p struct {
				Module *struct {
					origin
					Main    bool
					Replace *origin
				}
			}
			if err := d.Decode(&p); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return nil, fmt.Errorf("go list for %s: %w", platform, err)
			}
			if p.Module == nil || p.Module.Main {
				continue
			}
			from := p.Module.origin
			if p.Module.Replace != nil {
				from = *p.Module.Replace
			}
			found[from.Path] = component{Name: from.Path, Version: from.Version, Dir: from.Dir}
		}
	}
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return nil, fmt.Errorf("go env GOROOT: %w", err)
	}
	all := []component{{Name: "Go standard library", Dir: strings.TrimSpace(string(goroot))}}
	for _, c := range found {
		all = append(all, c)
	}
	slices.SortFunc(all[1:], func(a, b component) int { return cmp.Compare(a.Name, b.Name) })
	for i := range all {
		if err := all[i].read(); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func complaint(err error) string {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return ": " + strings.TrimSpace(string(exit.Stderr))
	}
	return ""
}

var (
	licenceFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying)([.-].*)?$`)
	noticeFile  = regexp.MustCompile(`(?i)^notice([.-].*)?$`)
)

// read fills the licence and the texts that have to go with a binary: the licence itself, unless it is Apache-2.0, which LICENSE
// has, and the component's own NOTICE.
func (c *component) read() error {
	entries, err := os.ReadDir(c.Dir)
	if err != nil {
		return fmt.Errorf("%s: %w", c.Name, err)
	}
	var licences []string
	for _, e := range entries {
		isLicence, isNotice := licenceFile.MatchString(e.Name()), noticeFile.MatchString(e.Name())
		if e.IsDir() || !isLicence && !isNotice || strings.HasSuffix(e.Name(), ".go") {
			continue
		}
		b, err := os.ReadFile(filepath.Join(c.Dir, e.Name()))
		if err != nil {
			return fmt.Errorf("%s: %w", c.Name, err)
		}
		if isLicence {
			licence := licenceOf(string(b))
			if licence == "" {
				return fmt.Errorf("%s %s: its %s is no licence that Apache-2.0 is known to permit; do without the module", c.Name, c.Version, e.Name())
			}
			licences = append(licences, licence)
			if licence == "Apache-2.0" {
				continue
			}
		}
		c.Texts = append(c.Texts, tidied(string(b)))
	}
	if len(licences) == 0 {
		return fmt.Errorf("%s %s: no licence in %s", c.Name, c.Version, c.Dir)
	}
	c.Licence = strings.Join(licences, " and ")
	return nil
}

// tidied is a text without blanks at the ends of lines, so that NOTICE has none.
func tidied(text string) string {
	lines := strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " \t")
	}
	return strings.Trim(strings.Join(lines, "\n"), "\n") + "\n"
}

var notWords = regexp.MustCompile(`[^a-z0-9]+`)

// licenceOf names the licence by the sentences that make it, if it is one that a work under Apache-2.0 may include: category A of
// apache.org/legal/resolved.html. All else, mixtures with others among it, is the empty name.
func licenceOf(text string) string {
	words := " " + notWords.ReplaceAllString(strings.ToLower(text), " ") + " "
	has := func(sentence string) bool { return strings.Contains(words, " "+sentence+" ") }
	for _, other := range []string{"gnu", "gpl", "lgpl", "agpl", "mozilla public license", "eclipse public license", "server side public license",
		"business source license", "commons clause", "all advertising materials", "creative commons"} {
		if has(other) {
			return ""
		}
	}
	switch {
	case has("apache license version 2 0 january 2004") && has("end of terms and conditions"):
		return "Apache-2.0"
	case has("permission is hereby granted free of charge to any person obtaining a copy of this software and associated documentation files") &&
		has("the above copyright notice and this permission notice shall be included in all copies or substantial portions of the software"):
		return "MIT"
	case has("permission to use copy modify and or distribute this software for any purpose with or without fee is hereby granted"):
		return "ISC"
	case !has("redistribution and use in source and binary forms with or without modification are permitted provided that the following conditions are met") ||
		!has("redistributions in binary form must reproduce the above copyright notice this list of conditions and the following disclaimer in the documentation and or other materials provided with the distribution"):
		return ""
	case has("neither the name"):
		return "BSD-3-Clause"
	default:
		return "BSD-2-Clause"
	}
}

// noticeOf is the part of NOTICE below the mark: a table, then the texts.
func noticeOf(all []component) string {
	var s strings.Builder
	s.WriteString("\nThe binary of rocketd contains the following. Each is used unchanged, under the licence named here.\n\n")
	for _, c := range all {
		fmt.Fprintf(&s, "  %-14s %s\n", c.Licence, strings.TrimSpace(c.Name+" "+c.Version))
	}
	s.WriteString("\nThe Apache License, Version 2.0 is in LICENSE. The other licences and notices:\n")
	for _, c := range all {
		for _, text := range c.Texts {
			fmt.Fprintf(&s, "\n%s\n%s\n\n%s", strings.Repeat("=", 80), c.Name, text)
		}
	}
	return s.String()
}
