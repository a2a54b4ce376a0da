package example

import (
	"context"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"kcluster"
)

func TestSurvivesItsLeader(t *testing.T) {
	cluster := kcluster.Start(t, "{brokers: 3, profile: fast, topics: {orders: {}}}")
	client, err := kgo.NewClient(
		kgo.SeedBrokers(cluster.Bootstrap()...),
		kgo.DefaultProduceTopic("orders"),
		kgo.MetadataMinAge(20*time.Millisecond),
	)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	produce := func(value string) {
		if err := client.ProduceSync(context.Background(), kgo.StringRecord(value)).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}

	produce("before")
	kill := cluster.Act("kill: leader(orders-0)") // returns when the cluster has noticed
	produce("after")
	cluster.Undo(kill)
	cluster.Await("isr(orders-0) = 3")
	cluster.RequireValid() // if not: what was lost, the events, and the cause of each
}
