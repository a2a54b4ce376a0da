// Package kcluster starts Kafka clusters that tests break.
//
//	cluster := kcluster.Start(t, "{brokers: 3, profile: fast, topics: {orders: {}}}")
//	cluster.Act("kill: leader(orders-0)")
//
// The process that runs them is the one at $KCLUSTER_URL, with $KCLUSTER_TOKEN, or `kcluster serve`,
// started once per test binary and ended with it. Every cluster has a lease, so that nothing is left
// of it if the test dies. What fails ends the test, with the server's reason.
package kcluster

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	lease         = 30 * time.Second
	jsonType      = "application/json"
	conditionTime = 10 * time.Second
)

// Cluster is a cluster of one test, which is stopped when the test ends.
type Cluster struct {
	t         testing.TB
	server    *server
	path      string
	bootstrap string
}

// Event is something that happened in a cluster. Cause is the ID of the event that caused it.
type Event struct {
	Sequence int    `json:"sequence"`
	ID       []int  `json:"id"`
	AtMs     int64  `json:"at_ms"`
	Kind     string `json:"kind"`
	Subject  string `json:"subject"`
	Text     string `json:"text"`
	Sentence string `json:"sentence"` // Text with its subject, for a line of its own
	Cause    []int  `json:"cause"`
}

// Verdict says whether a cluster has kept its promises: valid, invalid or unknown.
type Verdict struct {
	Outcome    string    `json:"outcome"`
	Reason     string    `json:"reason"`
	Anomalies  []Finding `json:"anomalies"`
	Violations []Finding `json:"violations"`
}

// Finding is a broken promise. Chain is what led to it, oldest first.
type Finding struct {
	Name  string `json:"name"`
	Text  string `json:"text"`
	Chain []struct {
		Text string `json:"text"`
	} `json:"chain"`
}

// Start starts a cluster with this topology, as in a topology file: YAML or JSON.
func Start(t testing.TB, topology string) *Cluster {
	t.Helper()
	server, err := shared()
	if err != nil {
		t.Fatalf("kcluster does not start ($KCLUSTER_COMMAND names it): %v", err)
	}
	c := &Cluster{t: t, server: server, path: "/v1/clusters"}
	var created struct{ ID, Bootstrap string }
	c.json("POST", "", map[string]string{"topology": topology, "lease": lease.String()}, &created)
	c.path += "/" + created.ID
	c.bootstrap = created.Bootstrap
	stop := make(chan struct{})
	go func() { // each request renews the lease
		for {
			select {
			case <-stop:
				return
			case <-time.After(lease / 3):
				server.call("GET", c.path, jsonType, nil)
			}
		}
	}()
	t.Cleanup(func() {
		close(stop)
		c.json("DELETE", "", nil, nil)
	})
	return c
}

// Bootstrap returns the brokers' addresses.
func (c *Cluster) Bootstrap() []string { return strings.Split(c.bootstrap, ",") }

// ClientConfig returns the settings with which a client of a library, such as "librdkafka", comes in
// as a user; "": as the first user, where clients must log in. The values of librdkafka are plain
// text also for other clients: "sasl.password", "ssl.ca.location".
func (c *Cluster) ClientConfig(library, user string) map[string]any {
	c.t.Helper()
	return c.ClientConfigBy(library, user, "")
}

// ClientConfigBy returns the same by a mechanism of SASL, such as "PLAIN"; "": by the strongest one.
func (c *Cluster) ClientConfigBy(library, user, mechanism string) map[string]any {
	c.t.Helper()
	var config struct{ Settings map[string]any }
	query := url.Values{"library": {library}, "user": {user}, "mechanism": {mechanism}}
	c.json("GET", "/client-config?"+query.Encode(), nil, &config)
	return config.Settings
}

// Act performs an action of scenario files, such as "kill: leader(orders-0)", and waits until the
// cluster has noticed. It returns the action's number, for Undo.
func (c *Cluster) Act(action string) int {
	c.t.Helper()
	var taken struct{ Action int }
	c.decode(&taken, "POST", "/actions", "application/yaml", []byte(action))
	return taken.Action
}

// Undo undoes an action: it starts what the action killed, and heals what it cut.
func (c *Cluster) Undo(action int) {
	c.t.Helper()
	c.json("DELETE", fmt.Sprintf("/actions/%d", action), nil, nil)
}

// Heal undoes every fault, and waits until all replicas are in sync.
func (c *Cluster) Heal() {
	c.t.Helper()
	c.json("POST", "/heal", nil, nil)
}

// Await waits until a condition of scenario files holds, such as "isr(orders-0) = 3".
func (c *Cluster) Await(condition string) {
	c.t.Helper()
	c.json("POST", "/wait", map[string]string{"until": condition, "within": conditionTime.String()}, nil)
}

// Verdict returns whether the cluster has kept its promises so far.
func (c *Cluster) Verdict() Verdict {
	c.t.Helper()
	return c.VerdictSince("")
}

// VerdictSince returns the verdict on what was sent and what happened since a moment: a time back,
// such as "30s", or what Mark returned; "" for everything.
func (c *Cluster) VerdictSince(since string) (verdict Verdict) {
	c.t.Helper()
	path := "/verdict"
	if since != "" {
		path += "?since=" + url.QueryEscape(since)
	}
	c.json("GET", path, nil, &verdict)
	return verdict
}

// Mark returns this moment, for VerdictSince and RequireValidSince, if tests share a cluster.
func (c *Cluster) Mark() string {
	c.t.Helper()
	var status struct {
		AtMs int64 `json:"at_ms"`
	}
	c.json("GET", "", nil, &status)
	return fmt.Sprintf("@%d", status.AtMs)
}

// Events returns what has happened, oldest first.
func (c *Cluster) Events() []Event {
	c.t.Helper()
	var list struct{ Events []Event }
	c.json("GET", "/events", nil, &list)
	return list.Events
}

// RequireValid ends the test unless the verdict is valid, with the events and their causes.
func (c *Cluster) RequireValid() {
	c.t.Helper()
	c.RequireValidSince("")
}

// RequireValidSince is RequireValid for what was sent and what happened since a moment.
func (c *Cluster) RequireValidSince(since string) {
	c.t.Helper()
	if findings := c.FindingsSince(since); findings != "" {
		c.t.Fatal(findings)
	}
}

// Findings returns what the cluster has broken, with the events and their causes; "" if the verdict
// is valid.
func (c *Cluster) Findings() string {
	c.t.Helper()
	return c.FindingsSince("")
}

// FindingsSince is Findings for what was sent and what happened since a moment.
func (c *Cluster) FindingsSince(since string) string {
	c.t.Helper()
	verdict := c.VerdictSince(since)
	if verdict.Outcome == "valid" {
		return ""
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%s: %s\n", verdict.Outcome, verdict.Reason)
	for _, finding := range append(verdict.Anomalies, verdict.Violations...) {
		fmt.Fprintf(&text, "  %s: %s\n", finding.Name, finding.Text)
		for _, link := range finding.Chain {
			fmt.Fprintf(&text, "    %s\n", link.Text)
		}
	}
	return text.String() + "what happened:\n" + c.story()
}

// story returns the events: number, time since the first one, and the number of the cause.
func (c *Cluster) story() string {
	c.t.Helper()
	var text strings.Builder
	numbers := map[string]int{}
	events := c.Events()
	for _, event := range events {
		numbers[fmt.Sprint(event.ID)] = event.Sequence
		at := event.AtMs - events[0].AtMs
		fmt.Fprintf(&text, "%4d %+8d ms  %s", event.Sequence, at, event.Sentence)
		if cause, known := numbers[fmt.Sprint(event.Cause)]; known {
			fmt.Fprintf(&text, " (because of %d)", cause)
		}
		text.WriteByte('\n')
	}
	return text.String()
}

// Processed reports that the application has processed a record, for RequireProcessedOnce.
func (c *Cluster) Processed(topic string, partition int32, offset int64) {
	c.t.Helper()
	report := map[string]any{"topic": topic, "offsets": [][2]int64{{int64(partition), offset}}}
	c.json("POST", "/processed", report, nil)
}

// RequireProcessedOnce ends the test unless each record of a topic was reported as processed, once
// and in order.
func (c *Cluster) RequireProcessedOnce(topic string) {
	c.t.Helper()
	var judged struct {
		Valid    bool
		Problems []struct{ Text string }
	}
	c.json("GET", "/processed?topic="+url.QueryEscape(topic), nil, &judged)
	if !judged.Valid {
		c.t.Fatalf("%s: %v\nwhat happened:\n%s", topic, judged.Problems, c.story())
	}
}

func (c *Cluster) json(method, path string, body, answer any) {
	c.t.Helper()
	var encoded []byte
	if body != nil {
		encoded, _ = json.Marshal(body) // maps of what JSON has
	}
	c.decode(answer, method, path, jsonType, encoded)
}

func (c *Cluster) decode(answer any, method, path, contentType string, body []byte) {
	c.t.Helper()
	received, err := c.server.call(method, c.path+path, contentType, body)
	if err == nil && answer != nil {
		err = json.Unmarshal(received, answer)
	}
	if err != nil {
		c.t.Fatalf("%s %s: %v", method, c.path+path, err)
	}
}

// server is the process that runs the clusters.
type server struct {
	URL   string
	Token string
	stdin io.WriteCloser // the process ends when this is closed, at the latest with this one
}

var shared = sync.OnceValues(func() (*server, error) {
	if address := os.Getenv("KCLUSTER_URL"); address != "" {
		return &server{URL: address, Token: os.Getenv("KCLUSTER_TOKEN")}, nil
	}
	program := os.Getenv("KCLUSTER_COMMAND")
	if program == "" {
		program = "kcluster"
	}
	words := append(strings.Fields(program), "serve", "--port", "0", "--json", "--exit-with-stdin")
	command := exec.Command(words[0], words[1:]...)
	command.Stderr = os.Stderr
	stdin, err := command.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(stdout).ReadBytes('\n')
	if err != nil {
		return nil, fmt.Errorf("%s ended before it was ready", strings.Join(words, " "))
	}
	started := &server{stdin: stdin}
	return started, json.Unmarshal(line, started)
})

// call sends a request; a refusal is an error with the server's reason.
func (s *server) call(method, path, contentType string, body []byte) ([]byte, error) {
	request, err := http.NewRequest(method, s.URL+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+s.Token)
	request.Header.Set("Content-Type", contentType)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	received, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode < 300 {
		return received, err
	}
	var refusal struct {
		Detail string
		State  []string
	}
	if json.Unmarshal(received, &refusal) != nil {
		refusal.Detail = string(received)
	}
	return nil, fmt.Errorf("%s", strings.Join(append([]string{refusal.Detail}, refusal.State...), "\n  "))
}
