package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"strings"

	provider "github.com/pulumi/pulumi-go-provider"
	"github.com/pulumi/pulumi-go-provider/infer"
)

// Command stands in for the command plugin's `local.Command`: a shell command in the life of a resource.
type Command struct{}

// CommandArgs are the inputs of a Command.
type CommandArgs struct {
	Create      *string           `pulumi:"create,optional"`
	Update      *string           `pulumi:"update,optional"`
	Delete      *string           `pulumi:"delete,optional"`
	Dir         *string           `pulumi:"dir,optional"`
	Environment map[string]string `pulumi:"environment,optional"`
	Interpreter []string          `pulumi:"interpreter,optional"`
	Logging     *string           `pulumi:"logging,optional"`
	Previous    *bool             `pulumi:"addPreviousOutputInEnv,optional"`
	Stdin       *string           `pulumi:"stdin,optional"`
	Triggers    []any             `pulumi:"triggers,optional" provider:"replaceOnChanges"`
}

// CommandState is what a Command leaves in the state.
type CommandState struct {
	CommandArgs
	Stdout string `pulumi:"stdout"`
	Stderr string `pulumi:"stderr"`
}

// Annotate gives the resource the token that the SDK knows.
func (command *Command) Annotate(annotator infer.Annotator) { annotator.SetToken("local", "Command") }

// Create runs the create command.
func (Command) Create(
	ctx context.Context, request infer.CreateRequest[CommandArgs],
) (infer.CreateResponse[CommandState], error) {
	state := CommandState{CommandArgs: request.Inputs}
	if request.DryRun {
		return infer.CreateResponse[CommandState]{Output: state}, nil
	}
	random := make([]byte, 8)
	if _, err := rand.Read(random); err != nil {
		return infer.CreateResponse[CommandState]{}, err
	}
	err := state.run(ctx, request.Inputs.Create)
	return infer.CreateResponse[CommandState]{ID: request.Name + hex.EncodeToString(random), Output: state}, err
}

// Update runs the update command, or the create command where there is none.
func (Command) Update(
	ctx context.Context, request infer.UpdateRequest[CommandArgs, CommandState],
) (infer.UpdateResponse[CommandState], error) {
	state := CommandState{CommandArgs: request.Inputs, Stdout: request.State.Stdout, Stderr: request.State.Stderr}
	if request.DryRun {
		return infer.UpdateResponse[CommandState]{Output: state}, nil
	}
	script := request.Inputs.Update
	if script == nil {
		script = request.Inputs.Create
	}
	err := state.run(ctx, script)
	return infer.UpdateResponse[CommandState]{Output: state}, err
}

// Delete runs the delete command.
func (Command) Delete(ctx context.Context, request infer.DeleteRequest[CommandState]) (infer.DeleteResponse, error) {
	return infer.DeleteResponse{}, request.State.run(ctx, request.State.Delete)
}

// run runs a script as the inputs say and keeps what it printed.
func (state *CommandState) run(ctx context.Context, script *string) error {
	if script == nil {
		return nil
	}
	interpreter := state.Interpreter
	if len(interpreter) == 0 {
		interpreter = []string{"/bin/sh", "-c"}
	}
	var stdout, stderr bytes.Buffer
	process := exec.CommandContext(ctx, interpreter[0], append(interpreter[1:len(interpreter):len(interpreter)], *script)...)
	process.Stdout, process.Stderr, process.Env = &stdout, &stderr, state.environment()
	if state.Dir != nil {
		process.Dir = *state.Dir
	}
	if state.Stdin != nil {
		process.Stdin = strings.NewReader(*state.Stdin)
	}
	if err := process.Run(); err != nil {
		return fmt.Errorf("%w\n%s", err, stderr.String())
	}
	state.Stdout, state.Stderr = strings.TrimSuffix(stdout.String(), "\n"), strings.TrimSuffix(stderr.String(), "\n")
	return nil
}

func (state *CommandState) environment() []string {
	environment := os.Environ()
	if state.Previous == nil || *state.Previous {
		environment = append(environment, "PULUMI_COMMAND_STDOUT="+state.Stdout, "PULUMI_COMMAND_STDERR="+state.Stderr)
	}
	for name, value := range state.Environment {
		environment = append(environment, name+"="+value)
	}
	return environment
}

func serveCommand() {
	plugin, err := infer.NewProviderBuilder().WithResources(infer.Resource(Command{})).Build()
	if err != nil {
		fail(err)
	}
	if err := provider.RunProvider(context.Background(), "command", "1.2.1", plugin); err != nil {
		fail(err)
	}
}
