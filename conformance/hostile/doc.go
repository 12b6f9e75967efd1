// Package hostile lets one peer do to a running server what harms it, by raw bytes: half frames, requests whose answers are never
// read, held requests, floods of connections, headers and bodies that are made to cost. Meanwhile, and afterwards, somebody else is
// served; and the server's memory stays where its limits say (which of the official server nobody can demand).
package hostile
