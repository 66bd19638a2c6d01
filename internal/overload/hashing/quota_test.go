package hashing

import (
	"testing"
	"testing/fstest"

	"oauth-server/internal/check"
)

func TestQuota(t *testing.T) {
	const v2, v1 = "sys/fs/cgroup/", "sys/fs/cgroup/cpu/"
	for _, tt := range []struct {
		name  string
		files map[string]string
		want  float64
	}{
		{"nothing is known", nil, 0},
		{"none", map[string]string{"proc/self/cgroup": "0::/\n", v2 + "cpu.max": "max 100000\n"}, 0},
		{"half a processor", map[string]string{"proc/self/cgroup": "0::/\n", v2 + "cpu.max": "50000 100000\n"}, 0.5},
		{"of all processors", map[string]string{"proc/self/cgroup": "0::/\n", v2 + "cpu.max": "400000 100000\n"}, 0},
		{"of a service and its slice", map[string]string{
			"proc/self/cgroup": "0::/system.slice/x.service\n", v2 + "system.slice/x.service/cpu.max": "300000 100000\n",
			v2 + "system.slice/cpu.max": "150000 100000\n", v2 + "cpu.max": "max 100000\n",
		}, 1.5},
		{"version 1", map[string]string{
			"proc/self/cgroup":      "3:cpu,cpuacct:/docker/x\n2:memory:/docker/x\n",
			v1 + "cpu.cfs_quota_us": "20000\n", v1 + "cpu.cfs_period_us": "100000\n",
		}, 0.2},
		{"none in version 1", map[string]string{
			"proc/self/cgroup": "3:cpu,cpuacct:/\n", v1 + "cpu.cfs_quota_us": "-1\n", v1 + "cpu.cfs_period_us": "100000\n",
		}, 0},
		{"half of version 1", map[string]string{"proc/self/cgroup": "3:cpu:/\n", v1 + "cpu.cfs_quota_us": "20000\n"}, 0},
		{"nonsense", map[string]string{"proc/self/cgroup": "0::/\n", v2 + "cpu.max": "some of it\n"}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			root := fstest.MapFS{}
			for name, text := range tt.files {
				root[name] = &fstest.MapFile{Data: []byte(text)}
			}
			check.Equal(t, "processors", Quota(root, 4), tt.want)
		})
	}
}
