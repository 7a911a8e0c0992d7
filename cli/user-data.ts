import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { value } from './args.ts'
import { ACCOUNT, type Commands } from './command.ts'
import { writeNamedFile } from './export.ts'
import { requireUser } from './input.ts'

export const userDataCommands: Commands = {
  'user data': {
    summary: 'Write everything stored about a user as JSON. Without secrets, for users who ask for their data.',
    example: 'user data ann@example.com --out ann.json',
    flags: { account: ACCOUNT, out: value('FILE', 'The file. Without it, the data goes to stdout.') },
    creates: false,
    async run (context) {
      const { services: { events, ownData }, args, stdout, signal } = context
      const { user_id, account } = await requireUser(context)
      await events.flush()
      const body = Readable.from(await ownData.read(user_id, { isLimited: false }), { objectMode: false })
      const file = args.optional('out')
      if (file === undefined) return await pipeline(body, stdout, { end: false, signal })
      await writeNamedFile(file, body, signal)
      return { user_id, account, file }
    }
  }
}
