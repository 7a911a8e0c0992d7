import { readFile } from 'node:fs/promises'
import { parseKeys } from '../lib/key-text.ts'
import { IdentityError } from '../lib/errors.ts'
import { required } from './args.ts'
import { CLIENT, OPERATOR, type Commands, YES } from './command.ts'
import { confirm } from './confirm.ts'
import { nameFile, toFileError } from './file-error.ts'
import { readClientId } from './input.ts'
import { printList, toBatches } from './output.ts'

const COLUMNS = {
  KID: 'kid',
  ALGORITHMS: ({ algorithms }: { algorithms: string[] }) => algorithms.join(','),
  THUMBPRINT: 'id',
  CREATED: 'createdAt',
  LAST_USED: 'lastUsedAt'
} as const

async function readJwks (path: string): Promise<{ keys: unknown[] }> {
  try {
    return parseKeys(await readFile(path, 'utf8'))
  } catch (error) {
    if (error instanceof IdentityError) throw new IdentityError('ErrParam', error.message.replace(/^jwks/, nameFile(path)))
    throw toFileError(error, path, 'read')
  }
}

export const clientKeyCommands: Commands = {
  'client key add': {
    summary: 'Add a public key to a client, for private_key_jwt. The others go on.',
    example: 'client key add ID --file public.pem',
    flags: { client: CLIENT, file: required('FILE', 'A public key in PEM, a JSON Web Key, or a set of them.') },
    creates: false,
    async run (context) {
      const { services: { clients }, args } = context
      const clientId = await readClientId(context)
      const added = await clients.addKeys(clientId, await readJwks(args.required('file')), OPERATOR)
      return { clientId, kid: added.map(({ jwk }) => jwk.kid!).join(',') }
    }
  },

  'client key list': {
    summary: 'List the public keys of a client and their last use.',
    example: 'client key list ID',
    flags: { client: CLIENT },
    creates: false,
    async run (context) {
      await printList(context, toBatches(await context.services.clients.listKeys(await readClientId(context), OPERATOR)), COLUMNS)
    }
  },

  'client key remove': {
    summary: 'Remove a public key of a client. The access tokens that it got end.',
    example: 'client key remove ID --key KID',
    flags: { client: CLIENT, key: required('KID', 'Its kid, or its thumbprint.'), yes: YES },
    creates: false,
    async run (context) {
      const { services: { clients }, args } = context
      const [clientId, kid] = [await readClientId(context), args.required('key')]
      await confirm(context, 'Remove this key? The access tokens that it got end.')
      await clients.removeKey(clientId, kid, OPERATOR)
      return { clientId, kid }
    }
  }
}
