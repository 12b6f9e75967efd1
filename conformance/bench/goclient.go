package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// clientReport is what the program conformance/client/load prints.
type clientReport struct {
	Sent            int64
	SendSeconds     float64
	SendP99Millis   float64
	Received        int64
	ReceiveSeconds  float64
	ReceiveComplete bool
}

// buildClient builds the load program of the stock Go client, which is in a module of its own.
func buildClient(ctx context.Context) (string, error) {
	root, err := moduleRoot()
	if err != nil {
		return "", err
	}
	out, err := os.CreateTemp("", "bench-client-")
	if err != nil {
		return "", err
	}
	_ = out.Close()
	cmd := exec.CommandContext(ctx, "go", "build", "-o", out.Name(), "./load")
	cmd.Dir = filepath.Join(root, "conformance", "client")
	if text, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build ./load: %w\n%s", err, text)
	}
	return out.Name(), nil
}

// moduleRoot is the folder with the product's go.mod, at or above the working folder.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	for err == nil {
		if _, serr := os.Stat(filepath.Join(dir, "conformance", "client", "go.mod")); serr == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("run it inside the rocketd tree")
		}
		dir = filepath.Dir(dir)
	}
	return "", err
}

// measureClient lets the stock Go client send and then consume what it sent.
func (in *instance) measureClient(ctx context.Context, s settings, client string, note func(string, float64)) error {
	if err := in.createTopic("goclient", 8); err != nil {
		return err
	}
	var report clientReport
	o, err := in.watch(func() (outcome, error) {
		ctx, cancel := context.WithTimeout(ctx, s.phase+2*time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, client, "-namesrv", in.Namesrv, "-topic", "goclient", "-seconds", fmt.Sprint(s.phase.Seconds()))
		cmd.Env = append(os.Environ(), "HOME="+in.Dir())
		cmd.Stderr = os.Stderr
		text, err := cmd.Output()
		if err != nil {
			return outcome{}, err
		}
		if err := json.Unmarshal(text, &report); err != nil {
			return outcome{}, fmt.Errorf("the client printed %.200q: %w", text, err)
		}
		if !report.ReceiveComplete {
			return outcome{}, fmt.Errorf("the client received %d of %d messages", report.Received, report.Sent)
		}
		return outcome{messages: report.Sent + report.Received}, nil
	})
	if err != nil {
		return err
	}
	note("Go client, sync sends: throughput", float64(report.Sent)/report.SendSeconds)
	note("Go client, sync sends: p99", report.SendP99Millis)
	note("Go client, push: throughput", float64(report.Received)/report.ReceiveSeconds)
	note("Go client, both: server CPU", o.cpuPerMessage())
	return nil
}
