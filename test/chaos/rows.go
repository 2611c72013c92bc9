package main

// rows of the matrix, in its order.
func rows() []*row {
	return []*row{
		replicasKilled(), apiServerRestarted(), controllerManagerGone(), fullStop(), etcdSlow(), webhookSleeps(),
		certificateExpired(), authorityRotated(), webhookConfigurationDeleted(), floorDeleted(), definitionDeleted(),
		clusterPolicyDeleted(), labelRemoved(), namespaceDeleted(), scaledToZero(), reinstalled(),
		clockAhead(), clockBehind(), leaderChange(), rollingRestart(),
	}
}
