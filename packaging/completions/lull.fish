# Completion of lull for fish: asks the command itself (lull complete).
function __lull_complete
    set -l words (commandline -opc)
    set -l now (commandline -ct)
    for line in (command $words[1] complete $words[2..-1] "$now" 2>/dev/null)
        switch $line
            case ':reports'
                __fish_complete_suffix "$now" .lull
                __fish_complete_directories "$now"
            case ':parts'
                __fish_complete_suffix "$now" .part
            case ':files'
                __fish_complete_path "$now"
            case ':command'
                __fish_complete_command
            case ':program *'
                set -l n (string replace ':program ' '' $line)
                complete -C (string join ' ' -- (string escape -- $words[(math $n + 1)..-1]) "$now")
            case '*'
                echo $line
        end
    end
end
complete -c lull -f -a '(__lull_complete)'
