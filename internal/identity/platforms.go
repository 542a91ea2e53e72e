package identity

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"
)

const (
	// fargateStopWindow is stopTimeout where a task definition does not set it.
	fargateStopWindow = 30 * time.Second
	// cloudRunStopWindow is fixed.
	cloudRunStopWindow = 10 * time.Second
	// podStopWindow is terminationGracePeriodSeconds where a pod does not set it.
	podStopWindow = 30 * time.Second
)

// ecs reads the task metadata, version 4, which ECS offers at the address in the
// environment.
func (d *detector) ecs(ctx context.Context) {
	d.id.Platform, d.id.StopWindow = ECS, fargateStopWindow
	base := d.Getenv("ECS_CONTAINER_METADATA_URI_V4")
	body, err := d.get(ctx, base+"/task", nil)
	if err != nil {
		d.id.Problem = fmt.Errorf("task metadata of ECS: %w", err)
		return
	}
	var task struct {
		TaskARN, Family, Revision, AvailabilityZone, LaunchType, Cluster string
	}
	if err := json.Unmarshal(body, &task); err != nil {
		d.id.Problem = errors.New("task metadata of ECS: the answer is not the JSON that is documented")
		return
	}
	d.id.Details = map[string]string{
		"task_arn": task.TaskARN, "zone": task.AvailabilityZone, "cluster": path.Base(task.Cluster),
		"launch_type": task.LaunchType, "task_definition": strings.Trim(task.Family+":"+task.Revision, ":"),
	}
	if task.Cluster == "" {
		delete(d.id.Details, "cluster")
	}
	if !strings.HasPrefix(task.TaskARN, "arn:") {
		d.id.Problem = errors.New("task metadata of ECS: no task ARN")
		return
	}
	// arn:aws:ecs:region:account:task/cluster/id
	d.id.Holder = line(path.Base(task.TaskARN))
}

// cloudRun reads the metadata server. The host name is localhost and the process
// 1 in every instance.
func (d *detector) cloudRun(ctx context.Context) {
	d.id.Platform, d.id.StopWindow = CloudRun, cloudRunStopWindow
	revision := d.Getenv("K_REVISION")
	d.id.Details = map[string]string{"service": d.Getenv("K_SERVICE"), "revision": revision}
	instance, err := d.google(ctx, "instance/id")
	if err != nil {
		d.id.Problem = fmt.Errorf("metadata server of Google: %w", err)
		d.id.Holder = line(revision)
		return
	}
	d.id.Details["instance"] = instance
	// The zone it tells is not a real one; the region is.
	if region, err := d.google(ctx, "instance/region"); err == nil {
		d.id.Details["region"] = path.Base(region)
	}
	// The beginning of the id differs little from instance to instance.
	d.id.Holder = line(revision + "/" + instance[max(0, len(instance)-16):])
}

// kubernetes needs no request: a pod's host name is its name, unless it shares
// the node's network, and POD_NAME says it then.
func (d *detector) kubernetes() {
	d.id.Platform, d.id.StopWindow = Kubernetes, podStopWindow
	pod := d.Getenv("POD_NAME")
	if pod == "" {
		pod = d.host()
	}
	namespace := d.Getenv("POD_NAMESPACE")
	if namespace == "" {
		if data, err := d.ReadFile("/var/run/secrets/kubernetes.io/serviceaccount/namespace"); err == nil {
			namespace = string(data)
		}
	}
	d.id.Details = map[string]string{"pod": pod, "namespace": namespace, "node": d.Getenv("NODE_NAME")}
	d.id.Holder = line(pod)
}
