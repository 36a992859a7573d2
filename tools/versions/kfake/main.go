// A Kafka that this project did not write, for tests: franz-go's fake cluster with real connections.
//
// It prints its bootstrap servers on one line, and ends when its standard input does.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kversion"
)

func main() {
	brokers := flag.Int("brokers", 1, "number of brokers")
	id := flag.String("id", "kfake", "cluster id")
	release := flag.String("as", "", "offer only the API versions of this release of Kafka, such as 3.9")
	without := flag.String("without", "", "API keys that it does not have, with commas between")
	flag.Parse()
	if err := serve(*brokers, *id, *release, *without); err != nil {
		fmt.Fprintln(os.Stderr, "kfake:", err)
		os.Exit(1)
	}
}

func serve(brokers int, id, release, without string) error {
	apis, err := offered(release, without)
	if err != nil {
		return err
	}
	cluster, err := kfake.NewCluster(kfake.NumBrokers(brokers), kfake.ClusterID(id), kfake.MaxVersions(apis))
	if err != nil {
		return err
	}
	defer cluster.Close()
	fmt.Println(strings.Join(cluster.ListenAddrs(), ","))
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// The versions of a release less the APIs to be without. kfake offers an API in the version of both, and refuses others.
func offered(release, without string) (*kversion.Versions, error) {
	apis := kversion.Tip()
	if release != "" {
		if apis = kversion.FromString(release); apis == nil {
			return nil, fmt.Errorf("no release of Kafka: %q", release)
		}
	}
	for _, text := range strings.FieldsFunc(without, func(r rune) bool { return r == ',' }) {
		key, err := strconv.ParseInt(text, 10, 16)
		if err != nil {
			return nil, fmt.Errorf("no API key: %q", text)
		}
		apis.SetMaxKeyVersion(int16(key), -1)
	}
	return apis, nil
}
