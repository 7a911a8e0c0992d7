/** A child process's side of the calls that child.ts makes. */

export type Calls = Record<string, (params: never) => Promise<unknown>>

interface Call {
  id: number
  name: string
  params: never
}

/** Answers the parent's calls, and exits when the parent disconnects. */
export function expose (calls: Calls): void {
  process.on('message', ({ id, name, params }: Call) => {
    calls[name]!(params).then(
      (result) => process.send!({ id, result }),
      (error: Error) => process.send!({ id, error: error.message })
    )
  })
  process.on('disconnect', () => process.exit())
}
