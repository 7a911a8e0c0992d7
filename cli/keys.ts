import { toTimestamp } from '../lib/clock.ts'
import type { Commands } from './command.ts'
import { printRecord } from './output.ts'

export const keysCommands: Commands = {
  'keys rotate': {
    summary: 'Create a new key for signing tokens. Earlier keys stay published.',
    flags: {},
    async run (context) {
      const { kid, since } = await context.services.oidc.rotateKeys()
      printRecord(context, { kid, signs_from: toTimestamp(since) })
    }
  }
}
