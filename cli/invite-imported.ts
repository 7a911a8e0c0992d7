import { UsageError } from './args.ts'
import { OPERATOR, type Context, type Result } from './command.ts'

/** `user invite --imported`: mails a link to everybody of a source who cannot sign in yet. */
export async function inviteImported (context: Context): Promise<Result> {
  const { services: { imports, accounts, events }, args, stderr, signal, json } = context
  for (const flag of ['name', 'role']) {
    if (args.all(flag).length > 0) throw new UsageError(`--${flag}: cannot be combined with --imported`)
  }
  if (accounts.outbox === undefined) throw new Error('--imported: the service has no email, see IDENTITY_MAIL_URL')
  const source = args.required('imported')
  const counts = { invited: 0, skipped: 0 }
  const perMinute = args.integer('per-minute', { minimum: 1, maximum: 6_000 })
  try {
    for await (const { result } of imports.inviteImported(source, OPERATOR, { perMinute, signal })) {
      counts[result]++
      // Sent at their pace, where no service runs.
      if (result === 'invited') await events.flush()
      if (stderr.isTTY === true && !json) stderr.write(`\r${counts.invited} invited, ${counts.skipped} skipped`)
    }
  } catch (error) {
    if (!signal.aborted) throw error
    stderr.write(`fastify-identity: stopped after ${counts.invited} invitations; the same command goes on with the others\n`)
  }
  if (stderr.isTTY === true && !json) stderr.write('\n')
  return { source, ...counts }
}
