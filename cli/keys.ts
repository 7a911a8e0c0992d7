import { toTimestamp } from '../lib/clock.ts'
import { toggle } from './args.ts'
import type { Commands } from './command.ts'
import { printList, printRecord } from './output.ts'

export const keysCommands: Commands = {
  'keys rotate': {
    summary: 'Create a new key for signing tokens. Earlier keys stay published.',
    flags: {
      'drop-former': toggle('For a key in the wrong hands: use the new key at once and drop all earlier ones. Everybody signs in once more.')
    },
    async run (context) {
      const { kid, since } = await context.services.oidc.rotateKeys({ dropFormer: context.args.has('drop-former') })
      printRecord(context, { kid, signs_from: toTimestamp(since) })
    }
  },

  'keys status': {
    summary: 'List the secret keys by id, and how many stored texts are sealed with each.',
    flags: {},
    async run (context) {
      const keys = await context.services.sealing.status()
      await printList(context, (async function * () { yield keys })(), { key_id: ({ key_id }) => key_id, state: ({ state }) => state, texts: ({ texts }) => texts })
    }
  },

  'keys reseal': {
    summary: 'Seal with the first secret key what is sealed with another one. May be interrupted and called again.',
    flags: {},
    async run (context) {
      const resealed = await context.services.sealing.reseal({ signal: context.signal })
      printRecord(context, { resealed }, 'Nothing needs the former keys any more: remove them, and restart every process.')
    }
  }
}
