// A client of the CRI gRPC API with the commands of crictl that gpuready and its tests use, and crictl's own words and
// answers for them. crictl itself is not to be had as a Go module; the API, and the containerd that answers, are real.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"text/template"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

func main() {
	configured := "unix:///run/containerd/containerd.sock"
	if text, err := os.ReadFile("/etc/crictl.yaml"); err == nil {
		if found := regexp.MustCompile(`(?m)^runtime-endpoint: "?([^"\s]+)`).FindSubmatch(text); found != nil {
			configured = string(found[1])
		}
	}
	endpoint := flag.String("runtime-endpoint", configured, "socket of the engine")
	limit := flag.Duration("timeout", 10*time.Second, "for each call")
	flag.Parse()
	connection, err := grpc.NewClient(*endpoint, grpc.WithTransportCredentials(insecure.NewCredentials()))
	check(err)
	ctx, cancel := context.WithTimeout(context.Background(), *limit)
	defer cancel()
	c := client{ctx, cri.NewRuntimeServiceClient(connection), cri.NewImageServiceClient(connection)}
	commands := map[string]func(*flag.FlagSet, []string){
		"info": c.info, "inspecti": c.inspecti, "runp": c.runp, "create": c.create, "start": c.start, "inspect": c.inspect,
		"rmp": c.rmp, "pods": c.pods, "inspectp": c.inspectp, "ps": c.ps,
	}
	command, known := commands[flag.Arg(0)]
	if !known {
		check(fmt.Errorf("no such command: %q", flag.Arg(0)))
	}
	command(flag.NewFlagSet(flag.Arg(0), flag.ExitOnError), flag.Args()[1:])
}

type client struct {
	ctx     context.Context
	runtime cri.RuntimeServiceClient
	image   cri.ImageServiceClient
}

func (c client) info(_ *flag.FlagSet, _ []string) {
	answer, err := c.runtime.Status(c.ctx, &cri.StatusRequest{Verbose: true})
	check(err)
	found := map[string]any{"status": answer.Status}
	for key, text := range answer.Info {
		var value any = text
		_ = json.Unmarshal([]byte(text), &value) // what is no JSON is shown as text
		found[key] = value
	}
	text, err := json.MarshalIndent(found, "", "  ")
	check(err)
	fmt.Println(string(text))
}

func (c client) inspecti(_ *flag.FlagSet, args []string) {
	answer, err := c.image.ImageStatus(c.ctx, &cri.ImageStatusRequest{Image: &cri.ImageSpec{Image: args[0]}})
	check(err)
	if answer.Image == nil {
		check(fmt.Errorf("no such image %q present", args[0]))
	}
	fmt.Println(answer.Image.Id)
}

func (c client) runp(flags *flag.FlagSet, args []string) {
	handler := flags.String("runtime", "", "runtime handler")
	check(flags.Parse(args))
	var pod cri.PodSandboxConfig
	read(flags.Arg(0), &pod)
	answer, err := c.runtime.RunPodSandbox(c.ctx, &cri.RunPodSandboxRequest{Config: &pod, RuntimeHandler: *handler})
	check(err)
	fmt.Println(answer.PodSandboxId)
}

func (c client) create(_ *flag.FlagSet, args []string) {
	var container cri.ContainerConfig
	var pod cri.PodSandboxConfig
	read(args[1], &container)
	read(args[2], &pod)
	answer, err := c.runtime.CreateContainer(c.ctx, &cri.CreateContainerRequest{
		PodSandboxId: args[0], Config: &container, SandboxConfig: &pod,
	})
	check(err)
	fmt.Println(answer.ContainerId)
}

func (c client) start(_ *flag.FlagSet, args []string) {
	_, err := c.runtime.StartContainer(c.ctx, &cri.StartContainerRequest{ContainerId: args[0]})
	check(err)
	fmt.Println(args[0])
}

func (c client) inspect(flags *flag.FlagSet, args []string) {
	flags.String("o", "", "go-template is all there is")
	text := flags.String("template", "", "over .status and .info")
	check(flags.Parse(args))
	answer, err := c.runtime.ContainerStatus(c.ctx, &cri.ContainerStatusRequest{ContainerId: flags.Arg(0), Verbose: true})
	check(err)
	status := map[string]any{
		"state": answer.Status.State.String(), "exitCode": answer.Status.ExitCode, "labels": answer.Status.Labels,
		"image": answer.Status.Image,
	}
	show(*text, status, answer.Info["info"])
}

func (c client) pods(flags *flag.FlagSet, args []string) {
	name, state := listing(flags, args)
	answer, err := c.runtime.ListPodSandbox(c.ctx, &cri.ListPodSandboxRequest{})
	check(err)
	for _, pod := range answer.Items {
		if name.MatchString(pod.Metadata.Name) && pod.State.String() == "SANDBOX_"+state {
			fmt.Println(pod.Id)
		}
	}
}

func (c client) ps(flags *flag.FlagSet, args []string) {
	name, state := listing(flags, args)
	answer, err := c.runtime.ListContainers(c.ctx, &cri.ListContainersRequest{})
	check(err)
	for _, container := range answer.Containers {
		if name.MatchString(container.Metadata.Name) && container.State.String() == "CONTAINER_"+state {
			fmt.Println(container.Id)
		}
	}
}

func listing(flags *flag.FlagSet, args []string) (*regexp.Regexp, string) {
	flags.Bool("q", false, "ids are all there is")
	name := flags.String("name", "", "regular expression")
	state := flags.String("state", "running", "ready, running, ...")
	check(flags.Parse(args))
	return regexp.MustCompile(*name), strings.ToUpper(*state)
}

func (c client) inspectp(flags *flag.FlagSet, args []string) {
	flags.String("o", "", "go-template is all there is")
	text := flags.String("template", "", "over .status and .info")
	check(flags.Parse(args))
	answer, err := c.runtime.PodSandboxStatus(c.ctx, &cri.PodSandboxStatusRequest{PodSandboxId: flags.Arg(0), Verbose: true})
	check(err)
	status := map[string]any{"metadata": map[string]any{
		"name": answer.Status.Metadata.Name, "namespace": answer.Status.Metadata.Namespace,
	}}
	show(*text, status, answer.Info["info"])
}

func show(text string, status map[string]any, verbose string) {
	var info map[string]any
	check(json.Unmarshal([]byte(verbose), &info))
	whole := map[string]any{"status": status, "info": info}
	if text == "" {
		shown, err := json.MarshalIndent(whole, "", "  ")
		check(err)
		fmt.Println(string(shown))
		return
	}
	check(template.Must(template.New("").Parse(text+"\n")).Execute(os.Stdout, whole))
}

func (c client) rmp(flags *flag.FlagSet, args []string) {
	force := flags.Bool("f", false, "stop it first")
	check(flags.Parse(args))
	for _, id := range flags.Args() {
		if *force {
			_, err := c.runtime.StopPodSandbox(c.ctx, &cri.StopPodSandboxRequest{PodSandboxId: id})
			check(err)
		}
		_, err := c.runtime.RemovePodSandbox(c.ctx, &cri.RemovePodSandboxRequest{PodSandboxId: id})
		check(err)
		fmt.Println("Removed sandbox", id)
	}
}

func read(path string, into any) {
	text, err := os.ReadFile(path)
	check(err)
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	decoder.DisallowUnknownFields()
	check(decoder.Decode(into))
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "crictl:", err)
		os.Exit(1)
	}
}
