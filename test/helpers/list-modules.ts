import { writeFileSync } from 'node:fs'
import { registerHooks } from 'node:module'

// For `node --import`: when the process ends, it writes the URLs of its modules to the file LOADED_MODULES, one a line. Threads are not
// listed: ours start without the flags of the process.

const urls = new Set<string>()
registerHooks({
  load (url, context, next) {
    urls.add(url)
    return next(url, context)
  }
})
const { moduleLoadList } = process as unknown as { moduleLoadList: string[] }
const listInternal = () => moduleLoadList.filter((name) => name.startsWith('NativeModule internal/deps/')).map((name) => name.replace('NativeModule ', 'node:'))
process.on('exit', () => { writeFileSync(process.env.LOADED_MODULES!, [...urls, ...listInternal()].join('\n')) })
