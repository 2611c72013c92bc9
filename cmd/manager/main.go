// Command manager runs Step Beyond: the admission webhooks and the controllers.
package main

import (
	"flag"
	"os"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"stepbeyond.dev/stepbeyond/internal/manager"
)

func main() {
	var options manager.Options
	options.Bind(flag.CommandLine)
	logging := zap.Options{}
	logging.BindFlags(flag.CommandLine)
	flag.Parse()
	ctrl.SetLogger(zap.New(zap.UseFlagOptions(&logging)))
	if err := manager.Run(ctrl.SetupSignalHandler(), ctrl.GetConfigOrDie(), options); err != nil {
		ctrl.Log.Error(err, "Stopping")
		os.Exit(1)
	}
}
