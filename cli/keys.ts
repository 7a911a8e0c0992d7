import { toTimestamp } from '../lib/clock.ts'
import { toggle } from './args.ts'
import type { Commands } from './command.ts'
import { printList, printRecord } from './output.ts'

export const keysCommands: Commands = {
  'keys rotate': {
    summary: 'Create a new key for signing tokens. Earlier keys stay published.',
    flags: {
      'drop-former': toggle('If a key has leaked: use the new key at once and drop all earlier ones. Everybody has to sign in again.')
    },
    async run (context) {
      const { kid, since } = await context.services.oidc.rotateKeys({ dropFormer: context.args.has('drop-former') })
      printRecord(context, { kid, signs_from: toTimestamp(since) })
    }
  },

  'keys status': {
    summary: 'List the secret keys by id, with the number of stored secrets that each encrypts.',
    flags: {},
    async run (context) {
      const keys = await context.services.sealing.status()
      await printList(context, (async function * () { yield keys })(), { key_id: ({ key_id }) => key_id, state: ({ state }) => state, texts: ({ texts }) => texts })
    }
  },

  'keys reseal': {
    summary: 'Re-encrypt stored secrets with the first secret key. An interrupted run can be resumed.',
    flags: {},
    async run (context) {
      const resealed = await context.services.sealing.reseal({ signal: context.signal })
      printRecord(context, { resealed }, 'The former keys are no longer needed: remove them, and restart every process.')
    }
  }
}
