import type { Commands } from './command.ts'
import { printRecord } from './output.ts'

export const loginCommands: Commands = {
  login: {
    summary: 'Sign in at a running service, in a browser of your choice, and print the tokens.',
    flags: {
      issuer: { type: 'string', value: 'URL', text: 'Where the service is; http://127.0.0.1:3000 unless given.' },
      client: { type: 'string', value: 'ID', required: true, text: 'A public client.' },
      scope: { type: 'string', value: 'SCOPE', multiple: true, text: "A scope; may be repeated. All of the client's own unless given." }
    },
    async runAlone ({ args, json, stdout, stderr, signal }) {
      const { loginByDevice } = await import('./device-login.ts')
      const { access_token, expires_in, refresh_token, scope } = await loginByDevice({
        issuer: args.optional('issuer') ?? 'http://127.0.0.1:3000',
        client_id: args.required('client'),
        scope: args.all('scope').join(' '),
        signal,
        // On stderr: what is on stdout may be read by a program.
        tell: (code) => stderr.write(`Go to ${code.verification_uri} and type ${code.user_code}\n`)
      })
      printRecord({ stdout, json }, { access_token, expires_in, ...(refresh_token !== undefined && { refresh_token }), ...(scope !== undefined && { scope }) })
    }
  }
}
