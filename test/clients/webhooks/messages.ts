// Prints messages of a webhook, before, during and after a rotation of its secret, for the verifiers in this folder:
//   node messages.ts > messages.jsonl && python3 verify.py < messages.jsonl && go mod tidy && go run verify.go < messages.jsonl
import { createSecretBox, generateSecretKey } from '../../../lib/crypto/secrets.ts'
import { createWebhookSecrets } from '../../../lib/webhooks/secrets.ts'

const DAY = 24 * 60 * 60_000
const body = JSON.stringify({ type: 'user.disabled', timestamp: new Date().toISOString(), data: { id: 'é'.repeat(10) } })

/** The clock of the rotation: it was as long ago, while the message is of now. */
let ago = 0
const secrets = createWebhookSecrets({ box: createSecretBox(generateSecretKey()), now: () => Date.now() - ago })
const { secret: first, sealed } = secrets.create('w')

function print (name: string, secret: string, sealedNow: string, valid: boolean, sent = body): void {
  const headers = secrets.sign({ id: 'w', sealed: sealedNow }, { id: '01KAGZ3V5M7Q2W8E9R0T1Y2U3A', body })
  process.stdout.write(`${JSON.stringify({ name, secret, headers, body: sent, valid })}\n`)
}

print('a message', first, sealed, true)
print('an altered message', first, sealed, false, body.replace('disabled', 'enabled'))
ago = DAY / 2
const rotated = secrets.rotate('w', sealed)
ago = 0
print('during a rotation, with the former secret', first, rotated.sealed, true)
print('during a rotation, with the new secret', rotated.secret, rotated.sealed, true)
ago = 2 * DAY
const late = secrets.rotate('w', sealed)
ago = 0
print('after a rotation, with the former secret', first, late.sealed, false)
print('after a rotation, with the new secret', late.secret, late.sealed, true)
ago = 10 * 60_000
print('a message of ten minutes ago', first, sealed, false)
