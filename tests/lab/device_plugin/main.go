// A device plugin of kubelet's API with two devices of nvidia.com/gpu. What a container gets for one stands in the file
// given, as JSON of the API's ContainerAllocateResponse: so a test says by which list strategy a GPU is given.
package main

import (
	"context"
	"log"
	"net"
	"os"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/encoding/protojson"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

const endpoint = "lab.sock"

type plugin struct {
	api.UnimplementedDevicePluginServer
	given string
}

func main() {
	os.Remove(api.DevicePluginPath + endpoint)
	listener, err := net.Listen("unix", api.DevicePluginPath+endpoint)
	check(err)
	server := grpc.NewServer()
	api.RegisterDevicePluginServer(server, plugin{given: os.Args[1]})
	go func() { check(server.Serve(listener)) }()
	connection, err := grpc.NewClient("unix://"+api.KubeletSocket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	check(err)
	request := &api.RegisterRequest{Version: api.Version, Endpoint: endpoint, ResourceName: "nvidia.com/gpu"}
	_, err = api.NewRegistrationClient(connection).Register(context.Background(), request)
	check(err)
	select {}
}

func (plugin) GetDevicePluginOptions(context.Context, *api.Empty) (*api.DevicePluginOptions, error) {
	return &api.DevicePluginOptions{}, nil
}

func (plugin) ListAndWatch(_ *api.Empty, stream grpc.ServerStreamingServer[api.ListAndWatchResponse]) error {
	devices := []*api.Device{{ID: "GPU-0", Health: api.Healthy}, {ID: "GPU-1", Health: api.Healthy}}
	if err := stream.Send(&api.ListAndWatchResponse{Devices: devices}); err != nil {
		return err
	}
	<-stream.Context().Done()
	return nil
}

func (p plugin) Allocate(_ context.Context, asked *api.AllocateRequest) (*api.AllocateResponse, error) {
	text, err := os.ReadFile(p.given)
	if err != nil {
		return nil, err
	}
	answer := &api.AllocateResponse{}
	for range asked.ContainerRequests {
		given := &api.ContainerAllocateResponse{}
		if err := protojson.Unmarshal(text, given); err != nil {
			return nil, err
		}
		answer.ContainerResponses = append(answer.ContainerResponses, given)
	}
	return answer, nil
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
